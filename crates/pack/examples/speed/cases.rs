//! What is copied.

use hyperslab_layout::{ByteOrder, ElementType, Kind, Loop, Nest};

/// One kind of copy.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) nest: Nest,
    pub(crate) from: ElementType,
    pub(crate) to: ElementType,
    /// What is added to the addresses on either side \[B\], in turns, so that memory is as cold as in real transfers.
    pub(crate) pieces: Vec<(i64, i64)>,
}

impl Case {
    pub(crate) fn bytes_written(&self) -> u64 {
        self.nest.elements() * self.to.bytes()
    }

    /// Which sides are at another place for each piece.
    pub(crate) fn moving_sides(&self) -> (bool, bool) {
        (self.pieces.iter().any(|p| p.0 != 0), self.pieces.iter().any(|p| p.1 != 0))
    }

    /// Bytes that hold all pieces, on either side.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let end = |hull: Option<(i64, i64)>, offset: Option<i64>| (hull.unwrap().1 + offset.unwrap()) as u64;
        (
            end(self.nest.hull_a(self.from.bytes()), self.pieces.iter().map(|p| p.0).max()),
            end(self.nest.hull_b(self.to.bytes()), self.pieces.iter().map(|p| p.1).max()),
        )
    }
}

/// Between two element types; loops outermost first, as count and steps \[B\] on the two sides.
struct Between(ElementType, ElementType);

impl Between {
    /// The whole of two large arrays.
    fn entire(&self, name: &str, loops: &[(u64, i64, i64)]) -> Case {
        let loops = loops.iter().map(|&(count, a, b)| Loop { count, a, b }).collect();
        let mut nest = Nest { a: 0, b: 0, loops };
        nest.b -= nest.hull_b(self.1.bytes()).unwrap().0;
        Case { name: name.to_owned(), nest, from: self.0, to: self.1, pieces: vec![(0, 0)] }
    }

    /// From pieces of a large array, which lie one after the other, into one slot.
    fn gather(&self, name: &str, room: i64, loops: &[(u64, i64, i64)]) -> Case {
        let case = self.entire(name, loops);
        let step = (case.nest.hull_a(self.0.bytes()).unwrap().1 as u64).next_multiple_of(4096) as i64;
        Case { pieces: (0..(room / step).max(1)).map(|i| (i * step, 0)).collect(), ..case }
    }

    /// The other way round: from a slot to pieces of a large array. The loops are those of the gathering.
    fn scatter(&self, name: &str, room: i64, loops: &[(u64, i64, i64)]) -> Case {
        let Case { name, nest, pieces, .. } = Between(self.1, self.0).gather(name, room, loops);
        let pieces = pieces.into_iter().map(|(a, b)| (b, a)).collect();
        Case { name, nest: nest.swapped(), from: self.0, to: self.1, pieces }
    }
}

/// All cases; targets have about `mebi` MiB, slots a sixteenth of that, and large arrays the fourfold.
pub(crate) fn all(mebi: u64) -> Vec<Case> {
    let native = ElementType::native;
    let doubles = Between(native(Kind::Float64), native(Kind::Float64));
    let mut cases = flash(mebi);
    cases.extend(runs(mebi, &doubles));
    cases.extend(cyclic(mebi, &doubles));
    cases.extend(short_loops(mebi, &doubles));
    cases.extend(transposes(mebi, &doubles));
    cases.extend(conversions(mebi));
    cases
}

/// One variable of FLASH: `unk(24, 16, 16, 16, 81)` in Fortran order, of which the inner 8 x 8 x 8 of each block are
/// gathered into `[81][8][8][8]`. Neighbouring variables share cache lines, so turns go through several arrays.
fn flash(mebi: u64) -> Vec<Case> {
    let (v, i, j, k) = (24 * 8, 16 * 24 * 8, 16 * 16 * 24 * 8, 16 * 16 * 16 * 24 * 8);
    let blocks = if mebi < 64 { 5 } else { 81 };
    let array = blocks as i64 * k;
    let pieces = |variables: &[i64]| -> Vec<(i64, i64)> {
        variables.iter().flat_map(|variable| (0..8).map(move |n| (n * array + variable * 8, 0))).collect()
    };
    let case = |name: &str, to: Kind| {
        let size = to.bytes() as i64;
        let between = Between(ElementType::native(Kind::Float64), ElementType::native(to));
        let loops = [(blocks, k, 512 * size), (8, j, 64 * size), (8, i, 8 * size), (8, v, size)];
        let mut case = between.entire(name, &loops);
        case.nest.a = 4 * (v + i + j);
        Case { pieces: pieces(&[0, 8, 16]), ..case }
    };
    let back = |case: Case| Case {
        nest: case.nest.swapped(),
        from: case.to,
        to: case.from,
        pieces: case.pieces.into_iter().map(|(a, b)| (b, a)).collect(),
        ..case
    };
    vec![
        case("FLASH gather", Kind::Float64),
        case("FLASH gather to float32", Kind::Float32),
        back(case("FLASH scatter", Kind::Float64)),
        back(case("FLASH scatter from float32", Kind::Float32)),
    ]
}

/// Rows of a block of three dimensions, half as long as those of the array around it.
fn runs(mebi: u64, doubles: &Between) -> Vec<Case> {
    let mut cases = Vec::new();
    let room = (mebi << 22) as i64;
    for (name, bytes) in [
        ("256 B", 256),
        ("512 B", 512),
        ("1 KiB", 1 << 10),
        ("2 KiB", 2 << 10),
        ("4 KiB", 4 << 10),
        ("16 KiB", 16 << 10),
        ("64 KiB", 64 << 10),
    ] {
        let rows = (mebi << 16) / bytes as u64 / 4;
        if rows > 0 {
            let row = bytes + 4 * 8;
            let loops =
                [(4, row * (rows as i64 + 4), rows as i64 * bytes), (rows, row, bytes), (bytes as u64 / 8, 8, 8)];
            cases.push(doubles.gather(&format!("rows of {name} among halo"), room, &loops));
            cases.push(doubles.scatter(&format!("rows of {name} among halo, scatter"), room, &loops));
        }
    }
    for (name, bytes) in [
        ("16 B", 16),
        ("24 B", 24),
        ("64 B", 64),
        ("256 B", 256),
        ("1 KiB", 1 << 10),
        ("4 KiB", 4 << 10),
        ("64 KiB", 64 << 10),
        ("1 MiB", 1 << 20),
    ] {
        for (size, total) in [("256 KiB", mebi << 12), ("4 MiB", mebi << 16), ("64 MiB", mebi << 20)] {
            if bytes as u64 * 4 > total {
                continue;
            }
            let planes = 4;
            let rows = total / bytes as u64 / planes;
            let (row, plane) = (2 * bytes, 2 * bytes * (rows as i64 + 8));
            let dense = rows as i64 * bytes;
            let loops = [(planes, plane, dense), (rows, row, bytes), (bytes as u64 / 8, 8, 8)];
            let name = format!("runs of {name}, {size}");
            cases.push(if size == "4 MiB" {
                doubles.gather(&name, room, &loops)
            } else {
                doubles.entire(&name, &loops)
            });
        }
        let rows = (mebi << 16) / bytes as u64 / 4;
        if rows > 0 {
            let loops = [
                (4, 2 * bytes * (rows as i64 + 8), rows as i64 * bytes),
                (rows, 2 * bytes, bytes),
                (bytes as u64 / 8, 8, 8),
            ];
            cases.push(doubles.scatter(&format!("runs of {name} scattered, 4 MiB"), room, &loops));
        }
    }
    cases
}

fn cyclic(mebi: u64, doubles: &Between) -> Vec<Case> {
    let mut cases = Vec::new();
    let room = (mebi << 22) as i64;
    let n = mebi << 13; // elements of a slot
    for p in [2, 4, 8, 16] {
        cases.push(doubles.gather(&format!("cyclic over {p}, gather"), room, &[(n, 8 * p, 8)]));
        cases.push(doubles.scatter(&format!("cyclic over {p}, scatter"), room, &[(n, 8 * p, 8)]));
    }
    for p in [2, 4] {
        let side = 1 << (n.ilog2() / 2);
        let row = 8 * p * side as i64;
        let loops = [(n / side, p * row, 8 * side as i64), (side, 8 * p, 8)];
        cases.push(doubles.gather(&format!("cyclic over {p} x {p}, gather"), room, &loops));
        cases.push(doubles.scatter(&format!("cyclic over {p} x {p}, scatter"), room, &loops));
    }
    for p in [2, 8] {
        cases.push(doubles.entire(&format!("cyclic over {p}, gather 64 KiB"), &[(mebi << 7, 8 * p, 8)]));
        cases.push(doubles.entire(&format!("cyclic over {p}, scatter 64 KiB"), &[(mebi << 7, 8, 8 * p)]));
    }
    let n = mebi << 17;
    cases.push(doubles.entire("cyclic over 2, gather 64 MiB", &[(n, 16, 8)]));
    cases.push(doubles.entire("cyclic over 2, scatter 32 MiB", &[(n / 2, 8, 16)]));
    let bytes = Between(ElementType::native(Kind::Int8), ElementType::native(Kind::Int8));
    cases.push(bytes.gather("every 2nd byte", room, &[(mebi << 16, 2, 1)]));
    cases
}

/// Nests whose innermost loop is short while the others are long.
fn short_loops(mebi: u64, doubles: &Between) -> Vec<Case> {
    let mut cases = Vec::new();
    let room = (mebi << 22) as i64;
    let n = mebi << 13;
    for k in [2, 3, 5, 8] {
        let rows = n / k;
        let k = k as i64;
        // An array of structures, [rows][k], from k separate arrays, and back.
        let loops = [(rows, 8, 8 * k), (k as u64, 8 * (rows as i64 + 8), 8)];
        cases.push(doubles.gather(&format!("{k} arrays interleaved"), room, &loops));
        cases.push(doubles.scatter(&format!("{k} arrays taken apart"), room, &loops));
        // Every second of 2k, row by row of a block of three dimensions.
        let side = 1 << (rows.ilog2() / 2);
        let loops =
            [(rows / side, side as i64 * k * 32, side as i64 * k * 8), (side, k * 32, k * 8), (k as u64, 16, 8)];
        cases.push(doubles.gather(&format!("every 2nd of rows of {k}"), room, &loops));
        cases.push(doubles.scatter(&format!("every 2nd of rows of {k}, scatter"), room, &loops));
    }
    let rows = (mebi << 9) as i64;
    cases.push(doubles.entire("3 arrays interleaved, 96 KiB", &[(rows as u64 / 8, 8, 24), (3, rows, 8)]));
    cases.push(doubles.entire("3 arrays taken apart, 96 KiB", &[(rows as u64 / 8, 24, 8), (3, 8, rows)]));
    // A corner of five dimensions of extent 4, and a long one outside.
    let n = n / 256;
    let loops = [(n, 8 * 8 * 8 * 8 * 8, 2048), (4, 4096, 512), (4, 512, 128), (4, 64, 32), (4, 8, 8)];
    cases.push(doubles.gather("corners of 4 x 4 x 4 x 4", room, &loops));
    let loops = [(n, 16 * 16 * 16 * 16 * 8, 2048), (4, 65536 / 2, 512), (4, 2048, 128), (4, 128, 32), (4, 8, 8)];
    cases.push(doubles.gather("corners of 4 x 4 x 4 x 4, far apart", room, &loops));
    let long = n as i64;
    let loops = [(n, 8, 2048), (4, 32 * long, 512), (4, 8 * long, 128), (16, 128 * long, 8)];
    cases.push(doubles.gather("short loops in another order", room, &loops));
    cases.push(doubles.scatter("short loops in another order, scatter", room, &loops));
    cases
}

fn transposes(mebi: u64, doubles: &Between) -> Vec<Case> {
    let singles = Between(ElementType::native(Kind::Float32), ElementType::native(Kind::Float32));
    let mut cases = Vec::new();
    let room = (mebi << 22) as i64;
    for (size, n) in [("128 KiB", mebi << 8), ("4 MiB", mebi << 13), ("64 MiB", mebi << 17)] {
        let pieces = |between: &Between, name: &str, loops: &[_]| {
            if size == "4 MiB" { between.gather(name, room, loops) } else { between.entire(name, loops) }
        };
        let side = 1 << (n.ilog2() / 2);
        let (rows, s) = (n / side, side as i64);
        let r = rows as i64;
        let square = [(rows, 8, 8 * s), (side, 8 * r, 8)];
        cases.push(pieces(doubles, &format!("transpose, steps 2^k, {size}"), &square));
        let odd = [(rows, 8, 8 * (s + 3)), (side, 8 * (r + 3), 8)];
        cases.push(pieces(doubles, &format!("transpose, odd steps, {size}"), &odd));
        let single = [(2 * rows, 4, 4 * s), (side, 8 * r, 4)];
        cases.push(pieces(&singles, &format!("transpose of singles, {size}"), &single));
        // Row-major to column-major in three dimensions: [i][j][k] to [k][j][i].
        let k = if mebi < 64 { 8 } else { 64u64 };
        let (i, j) = (1u64 << ((n / k).ilog2() / 2), (n / k) >> ((n / k).ilog2() / 2));
        let loops = [(i, 8 * (j * k) as i64, 8), (j, 8 * k as i64, 8 * i as i64), (k, 8, 8 * (i * j) as i64)];
        cases.push(pieces(doubles, &format!("3-D row to column major, {size}"), &loops));
    }
    cases
}

fn conversions(mebi: u64) -> Vec<Case> {
    let native = ElementType::native;
    let swapped = ElementType { kind: Kind::Float64, order: ByteOrder::Big };
    let room = (mebi << 22) as i64;
    let n = mebi << 13;
    let mut cases = Vec::new();
    for (from, to) in [
        (Kind::Float64, Kind::Float32),
        (Kind::Float32, Kind::Float64),
        (Kind::Float32, Kind::Float16),
        (Kind::Float16, Kind::Float32),
        (Kind::Float64, Kind::Int32),
        (Kind::Int16, Kind::Float64),
    ] {
        let (f, t) = (from.bytes() as i64, to.bytes() as i64);
        let between = Between(native(from), native(to));
        cases.push(between.gather(&format!("{from} to {to}"), room, &[(n, f, t)]));
        cases.push(between.gather(&format!("{from} to {to}, every 2nd"), room, &[(n, 2 * f, t)]));
    }
    cases.push(Between(swapped, native(Kind::Float64)).gather("swapped float64", room, &[(n, 8, 8)]));
    cases.push(Between(swapped, native(Kind::Float64)).gather("swapped float64, every 2nd", room, &[(n, 16, 8)]));
    cases.push(Between(swapped, native(Kind::Float32)).gather("swapped float64 to float32", room, &[(n, 8, 4)]));
    cases
}

//! The arrays that an expression is about: what they are, and their elements unit by unit, each read by the rank that looks at
//! it, so that nothing travels that does not match.

use super::grid::GridUnit;
use super::records::fields_of;
use crate::arrays::{Arrays, Info};
use crate::comm::Comm;
use crate::options::ReadOptions;
use hyperslab_collective::{LocalArray, Ownership};
use hyperslab_filter::{BlockValues, BoxPlace, Column, Evaluator, Expression, Parameter, Refused, Typed};
use hyperslab_layout::{ByteOrder, ElementType, Kind, dense_strides, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::Strategy;
use hyperslab_world::{Fault, FaultKind};

/// The strategy by which each rank reads what it asks for, and sends nothing.
const OWN: &str = "independent";

/// Arrays of one grid.
pub(crate) struct SelectSource<'a> {
    on: &'a dyn Arrays,
    /// Names of the arrays, each once.
    pub(crate) names: Vec<String>,
    infos: Vec<Info>,
    fields: Vec<SourceField>,
}

/// What a name in an expression may mean: an array, or a field of one.
struct SourceField {
    path: String,
    array: usize,
    element: ElementType,
    offset: usize,
}

/// Elements of an array, unit by unit.
pub(crate) type UnitsRead = Vec<Vec<u8>>;

/// What an expression that is refused says to users.
pub(crate) fn refusal(refused: &Refused) -> Fault {
    let fault = Fault::new(FaultKind::Invalid, refused.message());
    match &refused.hint {
        Some(hint) => fault.hint(hint.clone()),
        None => fault,
    }
}

/// Whether a name is a position.
pub(crate) fn is_position(name: &str) -> bool {
    name.strip_prefix('i')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Names of the arrays in an expression.
pub(crate) fn array_names(expression: &Expression, parameters: &[(String, Parameter)]) -> Vec<String> {
    let bound = |name: &&String| !parameters.iter().any(|(bound, _)| bound == *name);
    expression.names().iter().filter(bound).filter(|name| !is_position(name)).cloned().collect()
}

impl<'a> SelectSource<'a> {
    /// Looks at the arrays, on all ranks alike. Collective.
    pub(crate) fn look(on: &'a dyn Arrays, names: Vec<String>, doing: &str) -> Result<SelectSource<'a>, Fault> {
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let infos = on.look_at_all(&asked, doing, true)?;
        let mut fields = Vec::new();
        for (array, (name, info)) in names.iter().zip(&infos).enumerate() {
            let element = info.element;
            fields.push(SourceField {
                path: name.clone(),
                array,
                element: ElementType::native(element.kind),
                offset: 0,
            });
            let Kind::Opaque(opaque) = element.kind else { continue };
            let inner = opaque.fields().map(fields_of).unwrap_or_default().into_iter();
            fields.extend(inner.map(|field| {
                let path = format!("{name}.{}", field.path);
                SourceField { path, array, element: field.element, offset: field.offset }
            }));
        }
        Ok(SelectSource { on, names, infos, fields })
    }

    /// Refuses arrays of several shapes, and elements that lie elsewhere. All ranks find the same.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        for (name, info) in self.names.iter().zip(&self.infos) {
            if info.shape != self.infos[0].shape {
                let (first, of_first) = (&self.names[0], tuple(&self.infos[0].shape));
                let text = format!("'{name}' has another shape than '{first}': one grid is selected from");
                return Err(Fault::new(FaultKind::Invalid, text)
                    .expected(format!("shape {of_first}"), format!("shape {}", tuple(&info.shape))));
            }
            if let Kind::Opaque(opaque) = info.element.kind
                && opaque.is_reference()
            {
                let text = format!("'{name}' holds texts of any length, which cannot be selected");
                return Err(
                    Fault::new(FaultKind::Unsupported, text).hint("select positions, and read these texts then")
                );
            }
        }
        Ok(())
    }

    /// The ranks that select.
    pub(crate) fn comm(&self) -> &'a Comm {
        self.on.comm()
    }

    /// Extents of all arrays.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.infos[0].shape
    }

    /// Extents of a chunk: that of the array with the largest ones.
    pub(crate) fn chunks(&self) -> &[u64] {
        let bytes = |info: &&Info| info.chunks.iter().product::<u64>().saturating_mul(info.element.bytes());
        self.infos.iter().max_by_key(bytes).map_or(&[], |info| &info.chunks)
    }

    /// Bytes of an element of all arrays that are read.
    pub(crate) fn element_bytes(&self) -> u64 {
        self.infos.iter().map(|info| info.element.bytes()).sum()
    }

    /// Type of the elements of an array.
    pub(crate) fn element(&self, array: usize) -> ElementType {
        ElementType::native(self.infos[array].element.kind)
    }

    /// Number of an array by its name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Types an expression for these arrays.
    pub(crate) fn typed(&self, expression: &Expression, parameters: &[(String, Parameter)]) -> Result<Typed, Fault> {
        // A name that is a position stays one.
        let columns = self.fields.iter().map(|field| {
            let name = if is_position(&field.path) { "" } else { field.path.as_str() };
            (name, field.element.kind)
        });
        let columns: Vec<(&str, Kind)> = columns.collect();
        let parameters: Vec<(&str, Parameter)> =
            parameters.iter().map(|(name, bound)| (name.as_str(), bound.clone())).collect();
        expression.typed(&columns, self.shape().len(), &parameters).map_err(|refused| refusal(&refused))
    }

    /// Reads units: of each array, of each unit, its elements in row-major order. With bytes read from storage. Collective; each
    /// rank reads its own units, perhaps none. `buffers` are used again.
    pub(crate) fn read(&self, units: &[GridUnit], buffers: &mut Vec<Vec<u8>>) -> Result<(Vec<UnitsRead>, u64), Fault> {
        let holding =
            Ownership::Boxes { shape: self.shape().to_vec(), boxes: units.iter().map(GridUnit::bounds).collect() };
        let mut into = Vec::with_capacity(units.len() * self.infos.len());
        for array in 0..self.infos.len() {
            let element = self.element(array);
            for unit in units {
                let mut buffer = buffers.pop().unwrap_or_default();
                buffer.resize((unit.elements() * element.bytes()) as usize, 0);
                let order: Vec<usize> = (0..unit.shape.len()).collect();
                let strides = dense_strides(&unit.shape, &order, element.bytes());
                let (memory, shape) = (Memory::from_vec(buffer), unit.shape.clone());
                into.push(LocalArray { memory, element, shape, strides, offset: 0 });
            }
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut options = ReadOptions::default().holding(holding).into(into);
        // Where one client handles storage for all, ranks have what they read from its node.
        options.strategy = Strategy::named(OWN, &Strategy::ALL).filter(|_| !self.on.goes_by_one_client());
        let (read, report) = self.on.read(&names, options)?;
        let mut read = read.into_iter().map(|array| array.memory.into_vec());
        let each = self.infos.iter().map(|_| read.by_ref().take(units.len()).collect()).collect();
        Ok((each, report.walked().store_bytes))
    }

    /// The elements of the fields that are looked at, from one element of a unit on, as columns of an expression.
    pub(crate) fn columns<'b>(
        &self,
        data: &[&'b [u8]],
        (first, count): (usize, usize),
        used: &[usize],
        scratch: &'b mut Vec<Vec<u8>>,
    ) -> Vec<Column<'b>> {
        scratch.resize_with(self.fields.len(), Vec::new);
        for &number in used {
            let SourceField { array, element, offset, .. } = &self.fields[number];
            let (record, size) = (self.infos[*array].element.bytes() as usize, element.bytes() as usize);
            if record == size {
                continue;
            }
            let to = &mut scratch[number];
            to.clear();
            for i in first..first + count {
                let start = i * record + offset;
                let value = data[*array].get(start..start + size).unwrap_or_default();
                // A field may have another byte order than the machine.
                match element.order == ByteOrder::NATIVE {
                    true => to.extend(value),
                    false => to.extend(value.iter().rev()),
                }
            }
        }
        let column = |(field, gathered): (&SourceField, &'b Vec<u8>)| {
            let (record, size) = (self.infos[field.array].element.bytes() as usize, field.element.bytes() as usize);
            let bytes =
                if record == size { &data[field.array][first * size..(first + count) * size] } else { gathered };
            Column::dense(bytes, field.element.kind)
        };
        let scratch: &'b Vec<Vec<u8>> = scratch;
        self.fields.iter().zip(scratch).map(column).collect()
    }
}

/// An expression that is evaluated for elements of units.
pub(crate) struct Evaluated {
    evaluator: Evaluator,
    used: Vec<usize>,
}

impl Evaluated {
    pub(crate) fn of(typed: &Typed) -> Evaluated {
        Evaluated { evaluator: typed.evaluator(), used: typed.columns() }
    }

    /// Values of so many elements of a unit, from one on.
    pub(crate) fn values(
        &mut self,
        source: &SelectSource<'_>,
        (unit, data): (&GridUnit, &[&[u8]]),
        (first, count): (usize, usize),
        scratch: &mut Vec<Vec<u8>>,
    ) -> Result<&BlockValues, Fault> {
        let columns = source.columns(data, (first, count), &self.used, scratch);
        let place = BoxPlace { origin: &unit.origin, shape: &unit.shape, first: first as u64 };
        self.evaluator.evaluate(&columns, place, count).map_err(|refused| refusal(&refused))
    }
}

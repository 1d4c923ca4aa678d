// Usage: trip FOLDER ("mpi" | "alone")
//
// Everything of hyperslab.hpp once, on all ranks; ends with an error where something is not as it must be.
#include <mpi.h>

#include <hyperslab.hpp>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#define HAS_EIGEN 1
#endif

namespace hs = hyperslab;

#define EXPECT(that)                                                                                                   \
    do {                                                                                                               \
        if (!(that)) {                                                                                                 \
            std::fprintf(stderr, "line %d: %s is not so\n", __LINE__, #that);                                          \
            std::abort();                                                                                              \
        }                                                                                                              \
    } while (0)

// A type of our own, of two dimensions with a halo, that is like std::mdspan.
class field {
  public:
    field(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols), values_((rows + 2) * (cols + 2), -1.0) {}
    double &operator()(std::int64_t i, std::int64_t j) { return values_[(i + 1) * (cols_ + 2) + j + 1]; }
    double *data_handle() { return &(*this)(0, 0); }
    const double *data_handle() const { return &const_cast<field &>(*this)(0, 0); }
    static constexpr std::size_t rank() { return 2; }
    std::int64_t extent(std::size_t d) const { return d == 0 ? rows_ : cols_; }
    std::int64_t stride(std::size_t d) const { return d == 0 ? cols_ + 2 : 1; }

  private:
    std::int64_t rows_, cols_;
    std::vector<double> values_;
};

static double value(const hs::extents &at)
{
    return 100.0 * static_cast<double>(at[0]) + static_cast<double>(at[1]);
}

static void fields(const hs::comm &comm, const std::string &path)
{
    hs::dist slabs = hs::dist::hpf(comm, {12, 5}, {comm.size()}, {hs::block(), hs::whole()});
    hs::extents mine = slabs.local_shape();
    field u(mine[0], mine[1]), back(mine[0], mine[1]);
    for (std::int64_t i = 0; i < mine[0]; i++)
        for (std::int64_t j = 0; j < mine[1]; j++)
            u(i, j) = value(slabs.to_global({i, j}));
    hs::attributes said;
    said.set("units", "kg m-3").set("count", 3).set("pair", std::vector<float>{0.5f, -1.5f});
    said.set("axes", std::vector<std::string>{"x", "y\u00e4"});
    hs::group file = hs::open(comm, path, "w", {.durable = false});
    file.write("u", u, slabs, {.chunks = {4, 5}, .dimension_names = {"y", "x"}, .of_array = &said});
    std::vector<std::int32_t> ids(static_cast<std::size_t>(mine[0]), comm.rank());
    hs::dist rows = hs::dist::hpf(comm, {12}, {comm.size()}, {hs::block()});
    hs::request writing = file.iwrite("ids", std::span<const std::int32_t>(ids), rows, true);
    writing.wait();
    EXPECT(writing.is_over());
    file.close();

    file = hs::open(comm, path, "r+");
    std::vector<std::string> known = file.arrays();
    EXPECT(known.size() == 2);
    hs::array_info info = file.info("u");
    EXPECT(info.type == HYPERSLAB_FLOAT64 && info.shape == (hs::extents{12, 5}) && info.chunks == (hs::extents{4, 5}));
    file.read("u", back, slabs);
    for (std::int64_t i = 0; i < mine[0]; i++)
        for (std::int64_t j = 0; j < mine[1]; j++)
            EXPECT(back(i, j) == u(i, j));
    EXPECT(back(-1, 0) == -1.0 && back(mine[0], mine[1]) == -1.0);
    hs::attributes found = file.attributes_of("u");
    EXPECT(found.text("units") == "kg m-3" && found.value<long>("count") == 3);
    EXPECT(found.values<double>("pair") == (std::vector<double>{0.5, -1.5}) && found.text("axes", 1) == "y\u00e4");
    hs::dist all = hs::dist::replicated(comm, {2, 2});
    std::vector<double> corner{-1, -2, -3, -4}, four(4);
    hs::section where{.start = {0, 3}, .count = {2, 2}, .step = {5, 1}};
    file.write_section("u", corner, where, all);
    file.read_section("u", four, where, all);
    EXPECT(four == corner);
    hs::attributes more;
    file.set_attributes(more.set("time", 0.5), {}, {});
    EXPECT(file.attributes_of().value<double>("time") == 0.5);
    file.rename("ids", "owners");
    file.close();
}

static void boxes(const hs::comm &comm, const std::string &path)
{
    std::int64_t rank = comm.rank(), size = comm.size();
    hs::dist mine = hs::dist::boxes(comm, {4 * size, 3}, {{{4 * rank, 0}, {2, 3}}, {{4 * rank + 2, 0}, {2, 3}}});
    EXPECT(mine.parts() == 2 && mine.local_shape(1) == (hs::extents{2, 3}));
    std::vector<float> low(6, static_cast<float>(rank)), high(6, static_cast<float>(-rank)), back(6);
    std::vector<hs::memory> parts{hs::memory(low.data()), hs::memory(high.data())};
    {
        hs::group store = hs::open(comm, path, "w");
        hs::group step = store.step("0001");
        step.write("rho", parts, mine);
        step.close();
        std::vector<std::int64_t> numbers(static_cast<std::size_t>(size > 0 ? 2 : 0));
        std::iota(numbers.begin(), numbers.end(), 2 * rank);
        hs::dist map = hs::dist::map(comm, {2 * size}, {{2 * (size - 1 - rank), 2}});
        store.write("map", numbers, map);
        store.append("map", numbers, hs::dist::hpf(comm, {2 * size}, {size}, {hs::block()}));
        EXPECT(store.steps() == std::vector<std::string>{"0001"});
    }
    hs::group step = hs::open(comm, path).open_group("0001");
    std::vector<hs::memory> into{hs::memory(back.data()), hs::memory(low.data())};
    step.read("rho", into, mine);
    EXPECT(back[0] == static_cast<float>(rank) && low[5] == static_cast<float>(-rank));
}

static void failures(const hs::comm &comm, const std::string &path)
{
    try {
        hs::open(comm, path + ".h5", "r");
        EXPECT(false);
    } catch (const hs::error &error) {
        EXPECT(error.kind() == hs::failure::not_found);
        EXPECT(std::string(error.what()).find(path) != std::string::npos);
    }
    try {
        hs::group file = hs::open(comm, path + ".h5", "w");
        hs::dist whole = hs::dist::replicated(comm, {3});
        file.write("a", std::vector<double>(3, 1.0), whole);
        throw std::runtime_error("the program's own");
    } catch (const std::runtime_error &error) {
        EXPECT(std::string(error.what()) == "the program's own");
    }
    // What was given up is not there.
    try {
        hs::open(comm, path + ".h5", "r");
        EXPECT(false);
    } catch (const hs::error &error) {
        EXPECT(error.kind() == hs::failure::not_found);
    }
    const std::vector<double> fixed(3);
    hs::group store = hs::open(comm, path + ".zarr", "w");
    hs::dist whole = hs::dist::replicated(comm, {3});
    store.write("a", fixed, whole);
    try {
        store.read("a", fixed, whole);
        EXPECT(false);
    } catch (const std::invalid_argument &) {
    }
    store.create<std::uint8_t>("empty", {4});
    store.remove("a");
    EXPECT(store.arrays() == std::vector<std::string>{"empty"});
}

#ifdef HAS_EIGEN
static void matrices(const hs::comm &comm, const std::string &path)
{
    Eigen::MatrixXd matrix(3, 2), back(3, 2);
    matrix << 1, 2, 3, 4, 5, 6;
    Eigen::Matrix<float, 3, 2, Eigen::RowMajor> rows = matrix.cast<float>();
    Eigen::VectorXi line(4);
    line << 1, 2, 3, 4;
    hs::dist of_matrix = hs::dist::replicated(comm, {3, 2}), of_line = hs::dist::replicated(comm, {4});
    hs::group file = hs::open(comm, path, "w");
    file.write("matrix", matrix, of_matrix);
    file.write("rows", rows, of_matrix);
    file.write("line", line, of_line);
    file.write("block", matrix.block(0, 0, 3, 2), of_matrix);
    file.close();
    hs::open(comm, path).read("rows", back, of_matrix);
    EXPECT(back == matrix);
}
#endif

static void all(const hs::comm &comm, const std::string &folder)
{
    fields(comm, folder + "/u.h5");
    fields(comm, folder + "/u.zarr");
    boxes(comm, folder + "/boxes.zarr");
    failures(comm, folder + "/failing");
#ifdef HAS_EIGEN
    matrices(comm, folder + "/eigen.h5");
#endif
    if (comm.rank() == 0)
        std::puts("all is well");
}

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    if (std::string(argv[2]) == "alone") {
        all(hs::comm::alone(), argv[1]);
        return 0;
    }
    MPI_Init(&argc, &argv);
    all(hs::connect(MPI_COMM_WORLD), argv[1]);
    MPI_Finalize();
    return 0;
}

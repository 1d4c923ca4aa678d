// hyperslab from C++20: handles that free themselves, exceptions with the fields of an error, and arrays by whatever holds them.
// Over hyperslab.h and nothing else; that header says what is collective, and docs/cpp.md has a first program.
#ifndef HYPERSLAB_HPP
#define HYPERSLAB_HPP

#include <hyperslab.h>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hyperslab {

// Extents, indices and the like, one for each dimension, in the order of C.
using extents = std::vector<std::int64_t>;

// ---- what went wrong ------------------------------------------------------------------------------------------------------

enum class failure : int {
    invalid = HYPERSLAB_INVALID,
    disagreement = HYPERSLAB_DISAGREEMENT,
    timeout = HYPERSLAB_TIMEOUT,
    not_found = HYPERSLAB_NOT_FOUND,
    exists = HYPERSLAB_EXISTS,
    storage = HYPERSLAB_STORAGE,
    corrupt = HYPERSLAB_CORRUPT,
    interrupted = HYPERSLAB_INTERRUPTED,
    unsupported = HYPERSLAB_UNSUPPORTED,
    peer = HYPERSLAB_PEER,
    poisoned = HYPERSLAB_POISONED,
    busy = HYPERSLAB_BUSY,
    unsynced = HYPERSLAB_UNSYNCED,
    outdated = HYPERSLAB_OUTDATED,
    internal = HYPERSLAB_INTERNAL
};

namespace detail {

template <typename Copy> std::string copied(Copy copy)
{
    std::string text(copy(nullptr, 0), '\0');
    if (!text.empty())
        copy(text.data(), text.size() + 1);
    return text;
}

inline std::string of_error(int which)
{
    return copied([which](char *buffer, std::size_t size) { return hyperslab_error_detail(which, buffer, size); });
}

} // namespace detail

// The failure of a call, the same on all ranks where the call is collective. what() is its message.
class error : public std::runtime_error {
  public:
    // That of the last call of this thread that failed.
    static error last(int status) { return error(status); }

    failure kind() const noexcept { return kind_; }
    const std::string &hint() const noexcept { return parts_->hint; }
    // The same without what was being done.
    const std::string &cause() const noexcept { return parts_->cause; }
    const std::string &object() const noexcept { return parts_->object; }
    const std::string &expected() const noexcept { return parts_->expected; }
    const std::string &found() const noexcept { return parts_->found; }

  private:
    struct parts {
        std::string hint, cause, object, expected, found;
    };

    explicit error(int status)
        : std::runtime_error(detail::copied(hyperslab_error_message)), kind_(static_cast<failure>(status)),
          parts_(std::make_shared<const parts>(parts{
              detail::copied(hyperslab_error_hint), detail::of_error(HYPERSLAB_DETAIL_WHAT),
              detail::of_error(HYPERSLAB_DETAIL_OBJECT), detail::of_error(HYPERSLAB_DETAIL_EXPECTED),
              detail::of_error(HYPERSLAB_DETAIL_FOUND)}))
    {
    }

    failure kind_;
    std::shared_ptr<const parts> parts_; // exceptions are copied without throwing
};

namespace detail {

inline void check(int status)
{
    if (status != HYPERSLAB_OK)
        throw error::last(status);
}

template <auto free> struct freed_by {
    template <typename T> void operator()(T *handle) const noexcept { free(handle); }
};

inline std::vector<std::string> all_of(hyperslab_names *names)
{
    std::unique_ptr<hyperslab_names, freed_by<hyperslab_names_free>> owned(names);
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < hyperslab_names_count(names); i++)
        all.emplace_back(hyperslab_names_get(names, i));
    return all;
}

inline std::vector<const char *> pointers(const std::vector<std::string> &texts)
{
    std::vector<const char *> all;
    for (const std::string &text : texts)
        all.push_back(text.c_str());
    return all;
}

inline const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
inline const std::int64_t *or_null(const extents &numbers) { return numbers.empty() ? nullptr : numbers.data(); }

inline std::int32_t choice(std::optional<bool> said)
{
    return !said ? HYPERSLAB_DEFAULT : *said ? HYPERSLAB_YES : HYPERSLAB_NO;
}

template <typename> inline constexpr bool never = false;

} // namespace detail

// ---- types ----------------------------------------------------------------------------------------------------------------

// The number of a type of elements in hyperslab.h.
template <typename T> constexpr std::int32_t type_of()
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, bool>)
        return HYPERSLAB_BOOL;
    else if constexpr (std::is_integral_v<U>) {
        constexpr std::int32_t first = std::is_signed_v<U> ? HYPERSLAB_INT8 : HYPERSLAB_UINT8;
        static_assert(sizeof(U) <= 8, "integers have at most 64 bits");
        return first + (sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3);
    } else if constexpr (std::is_same_v<U, float>)
        return HYPERSLAB_FLOAT32;
    else if constexpr (std::is_same_v<U, double>)
        return HYPERSLAB_FLOAT64;
    else if constexpr (std::is_same_v<U, std::complex<float>>)
        return HYPERSLAB_COMPLEX64;
    else if constexpr (std::is_same_v<U, std::complex<double>>)
        return HYPERSLAB_COMPLEX128;
    else
        static_assert(detail::never<U>, "elements are truth values, integers, float, double or std::complex of these");
}

// ---- communicators --------------------------------------------------------------------------------------------------------

// One rank's membership. Destroy it before MPI_Finalize(), and on all ranks.
class comm {
  public:
    explicit comm(hyperslab_comm *handle) : handle_(handle) {}

    static comm alone()
    {
        hyperslab_comm *made;
        detail::check(hyperslab_comm_alone(&made));
        return comm(made);
    }

    // Threads of this process as ranks.
    static std::vector<comm> threads(int ranks)
    {
        std::vector<hyperslab_comm *> made(static_cast<std::size_t>(ranks > 0 ? ranks : 0));
        detail::check(hyperslab_comm_threads(ranks, made.data()));
        std::vector<comm> all;
        for (hyperslab_comm *one : made)
            all.emplace_back(one);
        return all;
    }

    int rank() const
    {
        std::int32_t rank;
        detail::check(hyperslab_comm_rank(c(), &rank));
        return rank;
    }

    int size() const
    {
        std::int32_t size;
        detail::check(hyperslab_comm_size(c(), &size));
        return size;
    }

    hyperslab_comm *c() const noexcept { return handle_.get(); }

  private:
    std::unique_ptr<hyperslab_comm, detail::freed_by<hyperslab_comm_free>> handle_;
};

#if defined(MPI_VERSION)
// The membership of an MPI communicator. Collective.
inline comm connect(MPI_Comm of)
{
    hyperslab_comm *made;
    detail::check(hyperslab_comm_mpi(of, &made));
    return comm(made);
}
#endif

// ---- distributions --------------------------------------------------------------------------------------------------------

// How one dimension is spread over the mesh of ranks, in the words of High Performance Fortran.
struct dim {
    std::int32_t kind = HYPERSLAB_BLOCK;
    std::int64_t width = 0;
    extents sizes = {};
};

inline dim block(std::int64_t width = 0) { return {HYPERSLAB_BLOCK, width}; }
inline dim cyclic(std::int64_t width = 0) { return {HYPERSLAB_CYCLIC, width}; }
inline dim whole() { return {HYPERSLAB_WHOLE}; }
inline dim uneven(extents sizes) { return {HYPERSLAB_UNEVEN, 0, std::move(sizes)}; }

// A box of this rank's own: its lowest index and its extents.
struct box {
    extents start, extent;
};

// A run of elements, numbered in the order of C.
struct run {
    std::int64_t start, length;
};

// Which rank holds which elements.
class dist {
  public:
    static dist blocks(const comm &of, const extents &shape)
    {
        hyperslab_dist *made;
        detail::check(hyperslab_dist_block(of.c(), ndim(shape), shape.data(), &made));
        return dist(made);
    }

    static dist replicated(const comm &of, const extents &shape)
    {
        hyperslab_dist *made;
        detail::check(hyperslab_dist_replicated(of.c(), ndim(shape), shape.data(), &made));
        return dist(made);
    }

    static dist hpf(const comm &of, const extents &shape, const extents &mesh, const std::vector<dim> &dims)
    {
        if (dims.size() != shape.size())
            throw std::invalid_argument("hyperslab: one dim for each extent");
        std::vector<hyperslab_dim> all;
        for (const dim &one : dims)
            all.push_back({one.kind, 0, one.width, one.sizes.empty() ? nullptr : one.sizes.data()});
        hyperslab_dist *made;
        detail::check(
            hyperslab_dist_hpf(of.c(), ndim(shape), shape.data(), ndim(mesh), mesh.data(), all.data(), &made));
        return dist(made);
    }

    static dist boxes(const comm &of, const extents &shape, const std::vector<box> &mine)
    {
        extents start, extent;
        for (const box &one : mine) {
            if (one.start.size() != shape.size() || one.extent.size() != shape.size())
                throw std::invalid_argument("hyperslab: a start and an extent for each dimension of a box");
            start.insert(start.end(), one.start.begin(), one.start.end());
            extent.insert(extent.end(), one.extent.begin(), one.extent.end());
        }
        hyperslab_dist *made;
        auto count = static_cast<std::int64_t>(mine.size());
        detail::check(hyperslab_dist_boxes(of.c(), ndim(shape), shape.data(), count, start.data(), extent.data(), &made));
        return dist(made);
    }

    static dist map(const comm &of, const extents &shape, const std::vector<run> &mine)
    {
        extents start, length;
        for (const run &one : mine) {
            start.push_back(one.start);
            length.push_back(one.length);
        }
        hyperslab_dist *made;
        auto count = static_cast<std::int64_t>(mine.size());
        detail::check(hyperslab_dist_map(of.c(), ndim(shape), shape.data(), count, start.data(), length.data(), &made));
        return dist(made);
    }

    // How many memories this rank has of such an array: its number of boxes, otherwise 1.
    std::int64_t parts() const
    {
        std::int64_t count;
        detail::check(hyperslab_dist_parts(c(), &count));
        return count;
    }

    extents local_shape(std::int64_t part = 0) const
    {
        std::int32_t dimensions;
        extents shape(HYPERSLAB_NDIM_MAX);
        detail::check(hyperslab_dist_local_shape(c(), part, &dimensions, shape.data()));
        shape.resize(static_cast<std::size_t>(dimensions));
        return shape;
    }

    // Where an element of this rank's part is in the whole array.
    extents to_global(const extents &local, std::int64_t part = 0) const
    {
        extents global(HYPERSLAB_NDIM_MAX);
        detail::check(hyperslab_dist_to_global(c(), part, local.data(), global.data()));
        return global;
    }

    const hyperslab_dist *c() const noexcept { return handle_.get(); }

  private:
    explicit dist(hyperslab_dist *handle) : handle_(handle) {}
    static std::int32_t ndim(const extents &of) { return static_cast<std::int32_t>(of.size()); }

    std::unique_ptr<hyperslab_dist, detail::freed_by<hyperslab_dist_free>> handle_;
};

// ---- memory ---------------------------------------------------------------------------------------------------------------

namespace detail {

// std::mdspan, and what is like it: Kokkos' mdspan, and types of your own.
template <typename A>
concept span_of_dims = requires(A &a) {
    a.data_handle();
    a.rank();
    { a.extent(0) } -> std::convertible_to<std::int64_t>;
    { a.stride(0) } -> std::convertible_to<std::int64_t>;
};

// Kokkos::View.
template <typename A>
concept view_of_dims = requires(A &a) {
    a.data();
    { a.extent(0) } -> std::convertible_to<std::int64_t>;
    { a.stride(0) } -> std::convertible_to<std::int64_t>;
};

// Matrices and arrays of Eigen.
template <typename A>
concept matrix = requires(A &a) {
    a.data();
    { a.rows() } -> std::convertible_to<std::int64_t>;
    { a.cols() } -> std::convertible_to<std::int64_t>;
    { a.innerStride() } -> std::convertible_to<std::int64_t>;
    { a.outerStride() } -> std::convertible_to<std::int64_t>;
    std::remove_cvref_t<A>::IsRowMajor;
};

template <typename A> std::size_t rank_of(const A &a)
{
    if constexpr (requires { a.rank(); })
        return a.rank();
    else
        return A::rank;
}

} // namespace detail

// Where this rank's part of an array lies: where it is, without a copy. It does not own the elements.
class memory {
  public:
    // Dense, of the shape of the part.
    template <typename T> explicit memory(T *data) : memory(data, -1) {}

    // Of this shape, with strides in elements, or dense; the part begins at these offsets in it, as behind a halo.
    template <typename T>
    memory(T *data, extents shape, extents strides = {}, extents offsets = {})
        : memory(data, static_cast<std::int32_t>(shape.size()))
    {
        shape_ = std::move(shape);
        for (std::int64_t stride : strides)
            strides_.push_back(stride * static_cast<std::int64_t>(sizeof(T)));
        offsets_ = std::move(offsets);
    }

    hyperslab_memory c() const noexcept
    {
        hyperslab_memory made = of_;
        made.shape = of_.ndim < 0 ? nullptr : shape_.data();
        made.strides = detail::or_null(strides_);
        made.offsets = detail::or_null(offsets_);
        return made;
    }

    // Whether it may be read into.
    bool is_const() const noexcept { return is_const_; }

  private:
    template <typename T>
    memory(T *data, std::int32_t ndim) : of_(hyperslab_dense(data, type_of<T>())), is_const_(std::is_const_v<T>)
    {
        of_.ndim = ndim;
    }

    hyperslab_memory of_;
    bool is_const_;
    extents shape_, strides_, offsets_;
};

namespace detail {

template <typename A> memory dims_of(A &a, auto *data)
{
    extents shape, strides;
    for (std::size_t d = 0; d < rank_of(a); d++) {
        shape.push_back(static_cast<std::int64_t>(a.extent(d)));
        strides.push_back(static_cast<std::int64_t>(a.stride(d)));
    }
    return memory(data, std::move(shape), std::move(strides));
}

} // namespace detail

// The memory of an array: of std::mdspan and types like it, Kokkos::View, Eigen, and contiguous ranges such as std::vector and
// std::span, which have the shape of the part.
template <typename A> memory memory_of(A &a)
{
    if constexpr (std::is_same_v<std::remove_cv_t<A>, memory>)
        return a;
    else if constexpr (detail::matrix<A>) {
        std::int64_t inner = a.innerStride(), outer = a.outerStride();
        if constexpr (requires { requires bool(std::remove_cv_t<A>::IsVectorAtCompileTime); })
            return memory(a.data(), {static_cast<std::int64_t>(a.size())}, {inner});
        else if constexpr (bool(std::remove_cv_t<A>::IsRowMajor))
            return memory(a.data(), {a.rows(), a.cols()}, {outer, inner});
        else
            return memory(a.data(), {a.rows(), a.cols()}, {inner, outer});
    } else if constexpr (detail::span_of_dims<A>)
        return detail::dims_of(a, a.data_handle());
    else if constexpr (detail::view_of_dims<A>)
        return detail::dims_of(a, a.data());
    else if constexpr (std::ranges::contiguous_range<A>)
        return memory(std::ranges::data(a));
    else
        static_assert(detail::never<A>, "arrays have data_handle(), rank(), extent(d) and stride(d), or are ranges");
}

// A part of a stored array: in each dimension `count` blocks, the first at `start`, each `step` behind the one before.
struct section {
    extents start, count, step = {}, block = {};
};

// ---- attributes -----------------------------------------------------------------------------------------------------------

// Names and typed values, in this rank's memory.
class attributes {
  public:
    attributes() : handle_(created()) {}
    explicit attributes(hyperslab_attributes *handle) : handle_(handle) {}

    template <typename T>
        requires(std::is_arithmetic_v<T>)
    attributes &set(const std::string &name, T value)
    {
        detail::check(hyperslab_attributes_set(handle_.get(), name.c_str(), type_of<T>(), 0, nullptr, &value));
        return *this;
    }

    template <typename T> attributes &set(const std::string &name, std::span<const T> values)
    {
        auto count = static_cast<std::int64_t>(values.size());
        detail::check(hyperslab_attributes_set(handle_.get(), name.c_str(), type_of<T>(), 1, &count, values.data()));
        return *this;
    }

    template <typename T> attributes &set(const std::string &name, const std::vector<T> &values)
    {
        return set(name, std::span<const T>(values));
    }

    attributes &set(const std::string &name, const std::string &text)
    {
        detail::check(hyperslab_attributes_set_text(handle_.get(), name.c_str(), text.c_str()));
        return *this;
    }

    attributes &set(const std::string &name, const char *text) { return set(name, std::string(text)); }

    attributes &set(const std::string &name, const std::vector<std::string> &texts)
    {
        std::vector<const char *> all = detail::pointers(texts);
        auto count = static_cast<std::int64_t>(all.size());
        detail::check(hyperslab_attributes_set_texts(handle_.get(), name.c_str(), count, all.data()));
        return *this;
    }

    std::vector<std::string> names() const
    {
        hyperslab_names *all;
        detail::check(hyperslab_attributes_names(handle_.get(), &all));
        return detail::all_of(all);
    }

    bool has(const std::string &name) const
    {
        for (const std::string &known : names())
            if (known == name)
                return true;
        return false;
    }

    // Its numbers, as this type.
    template <typename T> std::vector<T> values(const std::string &name) const
    {
        std::int32_t type, ndim;
        extents shape(HYPERSLAB_NDIM_MAX);
        detail::check(hyperslab_attributes_type(handle_.get(), name.c_str(), &type, &ndim, shape.data()));
        std::int64_t count = 1;
        for (std::int32_t d = 0; d < ndim; d++)
            count *= shape[static_cast<std::size_t>(d)];
        std::vector<T> all(static_cast<std::size_t>(count));
        detail::check(hyperslab_attributes_get(handle_.get(), name.c_str(), type_of<T>(), count, all.data()));
        return all;
    }

    template <typename T> T value(const std::string &name) const
    {
        T one;
        detail::check(hyperslab_attributes_get(handle_.get(), name.c_str(), type_of<T>(), 1, &one));
        return one;
    }

    std::string text(const std::string &name, std::int64_t number = 0) const
    {
        std::size_t length;
        detail::check(hyperslab_attributes_get_text(handle_.get(), name.c_str(), number, nullptr, 0, &length));
        std::string text(length, '\0');
        if (length > 0)
            detail::check(hyperslab_attributes_get_text(handle_.get(), name.c_str(), number, text.data(), length + 1,
                                                        nullptr));
        return text;
    }

    const hyperslab_attributes *c() const noexcept { return handle_.get(); }

  private:
    static hyperslab_attributes *created()
    {
        hyperslab_attributes *made;
        detail::check(hyperslab_attributes_create(&made));
        return made;
    }

    std::unique_ptr<hyperslab_attributes, detail::freed_by<hyperslab_attributes_free>> handle_;
};

// ---- options --------------------------------------------------------------------------------------------------------------

// How something is opened; what is not said is chosen: open(comm, "run.h5", "w", {.durable = false}).
struct open_options {
    std::string format = {}; // "zarr", "hdf5", "netcdf4", "netcdf4_classic", "netcdf3"; by the name or the first bytes if empty
    std::optional<bool> durable = {};
    int servers = 0;
    double arrival_seconds = 0, progress_seconds = 0, storage_seconds = 0;
    std::int64_t buffer_bytes = 0, subchunk_bytes = 0;
    std::string strategy = {}, exchange = {}, locking = {};
    const attributes *of_file = nullptr;    // of a new NetCDF or HDF5 file
    std::vector<std::string> unlimited = {}; // dimensions of it that may grow
};

// What is said of a new array.
struct write_options {
    extents chunks = {}, shards = {};
    std::optional<bool> sharded = {};
    std::string codecs = {};  // JSON, as Zarr's metadata list them
    extents maxshape = {};    // how far each dimension may grow in HDF5, -1 without limit
    const void *fill_value = nullptr; // one element of the type of what is stored
    std::vector<std::string> dimension_names = {}; // empty texts are no names
    const attributes *of_array = nullptr;
    bool overwrite = false, any_casting = false;
    std::string strategy = {};
};

namespace detail {

// What is said in C, as long as this and what it is made of live.
class write_words {
  public:
    explicit write_words(const write_options &said)
    {
        for (const std::string &name : said.dimension_names)
            names_.push_back(or_null(name));
        c.size = sizeof c;
        c.chunks = or_null(said.chunks);
        c.shards = or_null(said.shards);
        c.sharded = choice(said.sharded);
        c.codecs = or_null(said.codecs);
        c.maxshape = or_null(said.maxshape);
        c.fill_value = said.fill_value;
        c.dimension_names = names_.empty() ? nullptr : names_.data();
        c.attributes = said.of_array ? said.of_array->c() : nullptr;
        c.overwrite = said.overwrite ? HYPERSLAB_YES : HYPERSLAB_DEFAULT;
        c.any_casting = said.any_casting ? HYPERSLAB_YES : HYPERSLAB_DEFAULT;
        c.strategy = or_null(said.strategy);
    }
    write_words(const write_words &) = delete;

    hyperslab_write_options c{};

  private:
    std::vector<const char *> names_;
};

inline hyperslab_section in_c(const section &of)
{
    hyperslab_section made{};
    made.size = sizeof made;
    made.ndim = static_cast<std::int32_t>(of.start.size());
    made.start = of.start.data();
    made.count = of.count.data();
    made.step = or_null(of.step);
    made.block = or_null(of.block);
    return made;
}

template <typename A>
concept memories = std::ranges::contiguous_range<A> && std::same_as<std::ranges::range_value_t<A>, memory>;

inline std::vector<hyperslab_memory> in_c(std::span<const memory> parts)
{
    std::vector<hyperslab_memory> all;
    for (const memory &part : parts)
        all.push_back(part.c());
    return all;
}

} // namespace detail

// ---- groups and files -----------------------------------------------------------------------------------------------------

// A call under way. The elements must stay as they are until wait(); the destructor waits, too, and tells of a failure on stderr.
class request {
  public:
    explicit request(hyperslab_request *handle) noexcept : handle_(handle) {}
    request(request &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    request &operator=(request &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~request()
    {
        if (handle_ && hyperslab_wait(handle_) != HYPERSLAB_OK)
            std::fprintf(stderr, "%s\n", detail::copied(hyperslab_error_message).c_str());
    }

    void wait()
    {
        if (handle_)
            detail::check(hyperslab_wait(std::exchange(handle_, nullptr)));
    }

    bool is_over() const
    {
        int done = 1;
        if (handle_)
            detail::check(hyperslab_test(handle_, &done));
        return done != 0;
    }

  private:
    hyperslab_request *handle_;
};

// What an array is.
struct array_info {
    std::int32_t type;
    std::int64_t item_bytes;
    extents shape, chunks;
};

// What is open and holds arrays: a Zarr group, a file or a group in it, or a step of either.
//
// Call close() when all is written. The destructor closes what is left open, and tells of a failure on stderr; while an exception
// is on its way it gives up a step or a new file instead, on all ranks. Both are collective.
class group {
  public:
    explicit group(hyperslab_group *handle) noexcept : handle_(handle), exceptions_(std::uncaught_exceptions()) {}
    group(group &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)), exceptions_(other.exceptions_) {}
    group &operator=(group &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        std::swap(exceptions_, other.exceptions_);
        return *this;
    }
    ~group()
    {
        if (!handle_)
            return;
        bool in_flight = std::uncaught_exceptions() > exceptions_;
        int status = in_flight ? hyperslab_give_up(handle_, "an exception was thrown") : hyperslab_close(handle_);
        if (status != HYPERSLAB_OK && !in_flight)
            std::fprintf(stderr, "%s\n", detail::copied(hyperslab_error_message).c_str());
    }

    // Publishes a step or a new file. Collective.
    void close() { detail::check(hyperslab_close(std::exchange(handle_, nullptr))); }
    // Gives up a step or a new file on all ranks; always an error where there was one. Collective.
    void give_up(const std::string &why) { detail::check(hyperslab_give_up(std::exchange(handle_, nullptr), why.c_str())); }
    void flush() { detail::check(hyperslab_flush(handle_)); }
    void refresh() { detail::check(hyperslab_refresh(handle_)); }

    // Writes a new array; of an array of boxes, `array` is a range of memories, one for each of this rank's. Collective, as all that
    // moves arrays.
    template <typename A>
    void write(const std::string &name, const A &array, const dist &of, const write_options &said = {})
    {
        if constexpr (detail::memories<A>) {
            std::vector<hyperslab_memory> parts = detail::in_c(array);
            write_parts(name, parts.data(), of, nullptr, said);
        } else {
            memory lies = memory_of(array);
            hyperslab_memory part = lies.c();
            write_parts(name, &part, of, nullptr, said);
        }
    }
    // Writes a section of an array that is there; `of` says how ranks hold the section.
    template <typename A>
    void write_section(const std::string &name, const A &array, const section &where, const dist &of)
    {
        memory lies = memory_of(array);
        hyperslab_memory part = lies.c();
        write_parts(name, &part, of, &where, {});
    }
    // Makes an array of elements T that has the fill value everywhere.
    template <typename T>
    void create(const std::string &name, const extents &shape, const write_options &said = {})
    {
        detail::write_words words(said);
        auto ndim = static_cast<std::int32_t>(shape.size());
        detail::check(hyperslab_create_array(handle_, name.c_str(), type_of<T>(), ndim, shape.data(), &words.c));
    }

    template <typename A> void read(const std::string &name, A &&array, const dist &of)
    {
        if constexpr (detail::memories<A>) {
            for (const memory &one : array)
                check_writable(one);
            std::vector<hyperslab_memory> parts = detail::in_c(array);
            detail::check(hyperslab_read(handle_, name.c_str(), parts.data(), of.c(), nullptr));
        } else {
            read_memory(name, memory_of(array), of.c(), nullptr);
        }
    }
    template <typename A> void read_section(const std::string &name, A &&array, const section &where, const dist &of)
    {
        read_memory(name, memory_of(array), of.c(), &where);
    }

    // Makes an array longer along a dimension, by what `of` has of that.
    template <typename A> void append(const std::string &name, const A &array, const dist &of, int axis = 0)
    {
        memory lies = memory_of(array);
        hyperslab_memory part = lies.c();
        detail::check(hyperslab_append(handle_, name.c_str(), axis, &part, of.c()));
    }

    // Begins to write an array. With `staged`, it is copied first, and may be changed at once.
    template <typename A>
    [[nodiscard]] request iwrite(const std::string &name, const A &array, const dist &of, bool staged = false,
                                 const write_options &said = {})
    {
        memory lies = memory_of(array);
        hyperslab_memory part = lies.c();
        detail::write_words words(said);
        hyperslab_item item = hyperslab_item_of(name.c_str(), &part, of.c());
        item.options = &words.c;
        hyperslab_request *made;
        detail::check(hyperslab_iwrite(handle_, 1, &item, staged ? HYPERSLAB_YES : HYPERSLAB_NO, &made));
        return request(made);
    }
    template <typename A> [[nodiscard]] request iread(const std::string &name, A &&array, const dist &of)
    {
        memory lies = memory_of(array);
        check_writable(lies);
        hyperslab_memory part = lies.c();
        hyperslab_item item = hyperslab_item_of(name.c_str(), &part, of.c());
        hyperslab_request *made;
        detail::check(hyperslab_iread(handle_, 1, &item, &made));
        return request(made);
    }

    array_info info(const std::string &name)
    {
        hyperslab_array_info found{};
        found.size = sizeof found;
        detail::check(hyperslab_info(handle_, name.c_str(), &found));
        return {found.type, found.item_bytes, extents(found.shape, found.shape + found.ndim),
                extents(found.chunks, found.chunks + found.ndim)};
    }
    std::vector<std::string> arrays() const { return names(hyperslab_arrays); }
    std::vector<std::string> groups() const { return names(hyperslab_groups); }
    std::vector<std::string> steps() const { return names(hyperslab_steps); }

    // Attributes of an array, or of the group itself. Collective.
    attributes attributes_of(const std::string &name = {})
    {
        hyperslab_attributes *found;
        detail::check(hyperslab_attributes_of(handle_, detail::or_null(name), &found));
        return attributes(found);
    }
    void set_attributes(const attributes &set, const std::string &name = {},
                        const std::vector<std::string> &removed = {})
    {
        std::vector<const char *> all = detail::pointers(removed);
        auto count = static_cast<std::int64_t>(all.size());
        detail::check(hyperslab_edit_attributes(handle_, detail::or_null(name), set.c(), count, all.data()));
    }

    group open_group(const std::string &name)
    {
        hyperslab_group *inner;
        detail::check(hyperslab_open_group(handle_, name.c_str(), &inner));
        return group(inner);
    }
    group make_group(const std::string &name, bool may_exist = false)
    {
        hyperslab_group *inner;
        std::int32_t may = may_exist ? HYPERSLAB_YES : HYPERSLAB_NO;
        detail::check(hyperslab_make_group(handle_, name.c_str(), nullptr, may, &inner));
        return group(inner);
    }
    // Begins a step, which is visible whole when it is closed, and not before.
    [[nodiscard]] group step(const std::string &name, const attributes *of_step = nullptr)
    {
        hyperslab_group *begun;
        detail::check(hyperslab_begin_step(handle_, name.c_str(), of_step ? of_step->c() : nullptr, &begun));
        return group(begun);
    }
    void keep_steps(std::int64_t count) { detail::check(hyperslab_keep_steps(handle_, count)); }

    void remove(const std::string &name) { detail::check(hyperslab_delete(handle_, name.c_str())); }
    void rename(const std::string &from, const std::string &to)
    {
        detail::check(hyperslab_rename(handle_, from.c_str(), to.c_str()));
    }
    void resize(const std::string &name, const extents &shape)
    {
        auto ndim = static_cast<std::int32_t>(shape.size());
        detail::check(hyperslab_resize(handle_, name.c_str(), ndim, shape.data()));
    }

    hyperslab_group *c() const noexcept { return handle_; }

  private:
    void write_parts(const std::string &name, const hyperslab_memory *parts, const dist &of, const section *where,
                     const write_options &said)
    {
        detail::write_words words(said);
        hyperslab_section in_c{};
        if (where)
            in_c = detail::in_c(*where);
        const hyperslab_section *asked = where ? &in_c : nullptr;
        detail::check(hyperslab_write(handle_, name.c_str(), parts, of.c(), asked, where ? nullptr : &words.c));
    }

    void read_memory(const std::string &name, const memory &lies, const hyperslab_dist *of, const section *where)
    {
        check_writable(lies);
        hyperslab_memory part = lies.c();
        hyperslab_section in_c{};
        if (where)
            in_c = detail::in_c(*where);
        detail::check(hyperslab_read(handle_, name.c_str(), &part, of, where ? &in_c : nullptr));
    }

    static void check_writable(const memory &lies)
    {
        if (lies.is_const())
            throw std::invalid_argument("hyperslab: elements that are read into are not const");
    }

    std::vector<std::string> names(int (*list)(const hyperslab_group *, hyperslab_names **)) const
    {
        hyperslab_names *all;
        detail::check(list(handle_, &all));
        return detail::all_of(all);
    }

    hyperslab_group *handle_;
    int exceptions_;
};

// Opens a path in mode "r", "r+", "a", "w" or "x". Collective.
inline group open(const comm &of, const std::string &path, const std::string &mode = "r", const open_options &said = {})
{
    std::vector<const char *> unlimited = detail::pointers(said.unlimited);
    hyperslab_open_options c{};
    c.size = sizeof c;
    c.format = detail::or_null(said.format);
    c.durable = detail::choice(said.durable);
    c.servers = said.servers;
    c.arrival_seconds = said.arrival_seconds;
    c.progress_seconds = said.progress_seconds;
    c.storage_seconds = said.storage_seconds;
    c.buffer_bytes = said.buffer_bytes;
    c.subchunk_bytes = said.subchunk_bytes;
    c.strategy = detail::or_null(said.strategy);
    c.exchange = detail::or_null(said.exchange);
    c.locking = detail::or_null(said.locking);
    c.attributes = said.of_file ? said.of_file->c() : nullptr;
    c.unlimited_count = static_cast<std::int64_t>(unlimited.size());
    c.unlimited = unlimited.empty() ? nullptr : unlimited.data();
    hyperslab_group *made;
    detail::check(hyperslab_open(of.c(), path.c_str(), mode.c_str(), &c, &made));
    return group(made);
}

} // namespace hyperslab
#endif

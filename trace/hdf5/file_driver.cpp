#include "trace/hdf5/file_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace kvscope::trace {

namespace {

DriverFile* mine(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* mine(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t /*type*/) { return mine(file)->end_of_allocation; }

herr_t set_eoa(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t address) {
    mine(file)->end_of_allocation = address;
    return 0;
}

haddr_t get_eof(const H5FD_t* file, H5FD_mem_t /*type*/) { return mine(file)->length; }

}  // namespace

H5FD_class_t make_file_driver_class(const char* name, [[maybe_unused]] int number) {
    H5FD_class_t out{};
#ifdef H5FD_CLASS_VERSION
    out.version = H5FD_CLASS_VERSION;
    out.value = static_cast<H5FD_class_value_t>(H5_VFD_RESERVED + number);
#endif
    out.name = name;
    out.maxaddr = (static_cast<haddr_t>(1) << 62) - 1;
    out.fc_degree = H5F_CLOSE_STRONG;
    out.query = query;
    out.get_eoa = get_eoa;
    out.set_eoa = set_eoa;
    out.get_eof = get_eof;
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), out.fl_map);
    return out;
}

int read_bytes_at_address(int descriptor, haddr_t address, std::size_t size, void* buffer) {
    auto* bytes = static_cast<unsigned char*>(buffer);
    auto at = static_cast<off_t>(address);
    int error = 0;
    while (size > 0) {
        const ssize_t done = ::pread(descriptor, bytes, size, at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) error = errno;
        if (done <= 0) break;
        bytes += done;
        size -= static_cast<std::size_t>(done);
        at += done;
    }
    std::fill_n(bytes, size, static_cast<unsigned char>(0));
    return error;
}

}  // namespace kvscope::trace

#include "trace/hdf5/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/hdf5/file_driver.h"
#include "trace/hdf5/global_heap.h"

namespace kvscope::trace {

namespace {

bool read_noting(const DriverFile& file, haddr_t address, std::size_t size, void* buffer) {
    const int error = read_bytes_at_address(file.descriptor, address, size, buffer);
    if (error != 0) h5::note_system_error(error);
    return error == 0;
}

H5FD_t* driver_open(const char* name, unsigned flags, hid_t /*access*/, haddr_t /*max*/) {
    if ((flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0) return nullptr;
    const int descriptor =
        ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not block on a pipe without a writer
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        const bool is_no_file = descriptor >= 0 && status.st_mode != 0;
        h5::note_system_error(!is_no_file ? errno : S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
        if (descriptor >= 0) ::close(descriptor);
        return nullptr;
    }
    auto* file = new DriverFile{};
    file->descriptor = descriptor;
    file->length = static_cast<haddr_t>(status.st_size);
    return &file->base;
}

herr_t driver_close(H5FD_t* file) {
    const auto* mine = reinterpret_cast<DriverFile*>(file);
    ::close(mine->descriptor);
    delete mine;
    return 0;
}

herr_t driver_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address, std::size_t size,
                   void* buffer) {
    const DriverFile& f = *reinterpret_cast<DriverFile*>(file);
    if (!read_noting(f, address, size, buffer)) return -1;
    const auto* bytes = static_cast<const unsigned char*>(buffer);
    const std::optional<std::uint64_t> heap_size = h5::size_of_heap({bytes, size});
    if (!heap_size) return 0;
    // HDF5 may read only the beginning of a heap. The check needs the whole heap.
    const std::uint64_t total = *heap_size;
    if (total < h5::smallest_heap || address > f.length || total > f.length - address) return -1;
    if (total <= size) return h5::is_sound_heap({bytes, static_cast<std::size_t>(total)}) ? 0 : -1;
    std::vector<unsigned char> whole(static_cast<std::size_t>(total));
    if (!read_noting(f, address, whole.size(), whole.data())) return -1;
    return h5::is_sound_heap(whole) ? 0 : -1;
}

herr_t driver_handle(H5FD_t* file, hid_t /*access*/, void** handle) {
    *handle = &reinterpret_cast<DriverFile*>(file)->descriptor;
    return 0;
}

herr_t driver_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
                    std::size_t /*size*/, const void* /*buffer*/) {
    return -1;
}

hid_t driver() {
    static const H5FD_class_t description = [] {
        H5FD_class_t out = make_file_driver_class("kvscope_input", 89);
        out.open = driver_open;
        out.close = driver_close;
        out.read = driver_read;
        out.write = driver_write;
        out.get_handle = driver_handle;
        return out;
    }();
    static const hid_t id = h5::checked(H5FDregister(&description), "register the input driver");
    return id;
}

}  // namespace

std::optional<int> descriptor_of_input(hid_t file) {
    const h5::Handle access(h5::checked(H5Fget_access_plist(file), "read the file's properties"), H5Pclose);
    void* descriptor = nullptr;
    if (H5Pget_driver(access.get()) != driver() || H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor) < 0) return {};
    return *static_cast<const int*>(descriptor);
}

h5::Handle open_input_file(const std::filesystem::path& path) {
    const std::string action = "open the file";
    h5::note_system_error(0);
    const h5::Handle access(h5::checked(H5Pcreate(H5P_FILE_ACCESS), action), H5Pclose);
    h5::checked(H5Pset_driver(access.get(), driver(), nullptr), action);
    h5::checked(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), action);
#if H5_VERSION_GE(1, 10, 7)
    h5::checked(H5Pset_file_locking(access.get(), false, true), action);
#endif
    return {h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), action), H5Fclose};
}

}  // namespace kvscope::trace

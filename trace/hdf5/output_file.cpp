#include "trace/hdf5/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>

#include "common/blocked_signals.h"
#include "common/whole_file.h"
#include "trace/hdf5/file_driver.h"

namespace kvscope::trace {

struct OutputFile::Disk {
    int descriptor = -1;
    int error = 0;  ///< errno of the first failed write
};

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* action, int error) {
    throw WriteFailed(fmt::format("cannot {} {}: {}{}", action, path.string(), std::strerror(error),
                                  error == ENOSPC || error == EDQUOT || error == EFBIG
                                      ? "; finished work is kept: free disk space and run the same command again"
                                      : ""));
}

/// Returns 0, or errno on failure.
int write_whole(int descriptor, const void* data, std::size_t size, off_t at) {
    const BlockedSignals blocked{SIGXFSZ};
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t done = ::pwrite(descriptor, bytes, size, at);
        if (done < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        if (done == 0) return EIO;
        bytes += done;
        size -= static_cast<std::size_t>(done);
        at += done;
    }
    return 0;
}

struct OutputDriverFile {
    DriverFile file;
    OutputFile::Disk* disk;
};

OutputDriverFile* mine(H5FD_t* file) { return reinterpret_cast<OutputDriverFile*>(file); }

H5FD_t* driver_open(const char* /*name*/, unsigned /*flags*/, hid_t access, haddr_t /*max*/) {
    auto* const disk = *static_cast<OutputFile::Disk* const*>(H5Pget_driver_info(access));
    auto* out = new OutputDriverFile{};
    out->file.descriptor = disk->descriptor;
    out->disk = disk;
    return &out->file.base;
}

herr_t driver_close(H5FD_t* file) {
    delete mine(file);
    return 0;
}

herr_t driver_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address, std::size_t size,
                   void* buffer) {
    const int error = read_bytes_at_address(mine(file)->file.descriptor, address, size, buffer);
    if (mine(file)->disk->error == 0) mine(file)->disk->error = error;
    return 0;
}

herr_t driver_write(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address, std::size_t size,
                    const void* buffer) {
    OutputDriverFile& f = *mine(file);
    f.file.length = std::max(f.file.length, address + size);
    if (f.disk->error == 0) {
        f.disk->error = write_whole(f.file.descriptor, buffer, size, static_cast<off_t>(address));
    }
    return 0;
}

herr_t driver_truncate(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
    OutputDriverFile& f = *mine(file);
    f.file.length = f.file.end_of_allocation;
    const BlockedSignals blocked{SIGXFSZ};
    if (f.disk->error == 0 && ::ftruncate(f.file.descriptor, static_cast<off_t>(f.file.length)) != 0) {
        f.disk->error = errno;
    }
    return 0;
}

hid_t driver() {
    static const H5FD_class_t description = [] {
        H5FD_class_t out = make_file_driver_class("kvscope_output", 88);
        out.fapl_size = sizeof(OutputFile::Disk*);
        out.open = driver_open;
        out.close = driver_close;
        out.read = driver_read;
        out.write = driver_write;
        out.truncate = driver_truncate;
        return out;
    }();
    static const hid_t id = h5::checked(H5FDregister(&description), "register the output driver");
    return id;
}

h5::Handle create(const std::filesystem::path& path, OutputFile::Disk* disk) {
    const std::string action = "create the file";
    const h5::Handle access(h5::checked(H5Pcreate(H5P_FILE_ACCESS), action), H5Pclose);
    h5::checked(H5Pset_driver(access.get(), driver(), static_cast<const void*>(&disk)), action);
    h5::checked(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), action);
    // The file format of HDF5 1.10 has checksums and small indices, and h5py and HDFView can read the format.
    h5::checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), action);
    const h5::Handle creation(h5::checked(H5Pcreate(H5P_FILE_CREATE), action), H5Pclose);
    h5::checked(H5Pset_attr_phase_change(creation.get(), 64, 48), action);
    return {h5::checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), action), H5Fclose};
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), disk_(std::make_unique<Disk>()) {
    disk_->descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (disk_->descriptor < 0) fail(path_, "create", errno);
    try {
        file_ = create(path_, disk_.get());
    } catch (...) {
        ::close(disk_->descriptor);
        ::unlink(path_.c_str());
        throw;
    }
}

OutputFile::~OutputFile() {
    if (file_) {
        const h5::Guard guard;
        file_ = h5::Handle();
    }
    if (disk_->descriptor >= 0) ::close(disk_->descriptor);
    if (!committed_) ::unlink(path_.c_str());
}

void OutputFile::require_healthy() const {
    if (disk_->error != 0) fail(path_, "write", disk_->error);
}

void OutputFile::close() {
    require_healthy();
    h5::checked(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "complete the file");
    file_.close("complete the file");
    require_healthy();
}

void OutputFile::commit(const std::filesystem::path& target) {
    if (file_) throw std::logic_error("a file must be closed before it is committed");
    if (::fsync(disk_->descriptor) != 0) fail(path_, "sync", errno);
    if (::close(std::exchange(disk_->descriptor, -1)) != 0) fail(path_, "close", errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) fail(target, "rename into place", errno);
    committed_ = true;
    sync_folder(target.parent_path());
}

void write_small_file_atomically(const std::filesystem::path& target, std::string_view contents) {
    try {
        write_whole_file(target, contents, true);
    } catch (const FileNotWritten& failed) {
        fail(target, "write", failed.error);
    }
    sync_folder(target.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder.empty() ? "." : folder;
    const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) fail(path, "open", errno);
    const int error = ::fsync(directory) == 0 ? 0 : errno;
    ::close(directory);
    // Some file systems cannot sync folders and return EINVAL or EROFS, which is harmless.
    if (error != 0 && error != EINVAL && error != EROFS) fail(path, "sync", error);
}

}  // namespace kvscope::trace

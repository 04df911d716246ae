#include "trace/hdf5/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <tuple>

namespace kvscope::trace::h5 {

namespace {

struct Innermost {
    std::string message;
    bool truncated = false;
    bool out_of_memory = false;
};

/// errno of the last failed system call. Access requires the Guard.
int noted_error = 0;

herr_t collect(unsigned /*n*/, const H5E_error2_t* error, void* data) {
    auto& out = *static_cast<Innermost*>(data);
    if (out.message.empty() && error->desc != nullptr) out.message = error->desc;
    if (error->min_num == H5E_TRUNCATED) out.truncated = true;
    if (error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE) out.out_of_memory = true;
    return 0;
}

Innermost innermost_error() {
    Innermost out;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &out);
    if (out.message.empty()) out.message = "HDF5 reported no reason";
    return out;
}

thread_local int n_held = 0;  ///< number of Guards that this thread holds

}  // namespace

Guard::Guard() {
    static std::recursive_mutex mutex;
    lock_ = std::unique_lock(mutex, std::defer_lock);
    enter();
    // Disables external links: a trace is one file, and HDF5 would open any link target, even a pipe that never ends.
    [[maybe_unused]] static const herr_t unfollowed = H5Lunregister(H5L_TYPE_EXTERNAL);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Guard::~Guard() { --n_held; }

void Guard::enter() {
    static std::mutex turnstile;
    const auto turn = n_held == 0 ? std::unique_lock(turnstile) : std::unique_lock<std::mutex>();
    lock_.lock();
    ++n_held;
}

void Guard::let_others() {
    if (n_held != 1) return;
    --n_held;
    lock_.unlock();
    enter();
}

Handle::~Handle() {
    if (id_ >= 0) close_(id_);
}

void Handle::close(const std::string& action) {
    if (id_ >= 0) checked(close_(std::exchange(id_, -1)), action);
}

template <class Result>
Result checked(Result result, const std::string& action) {
    if (result >= 0) return result;
    const Innermost error = innermost_error();
    H5Eclear2(H5E_DEFAULT);
    int why = std::exchange(noted_error, 0);
    if (why == 0 && error.out_of_memory) why = ENOMEM;
    const char* reason = why != 0 ? std::strerror(why) : error.message.c_str();
    // HDF5 describes wrong checksums, signatures and addresses in its own terms.
    constexpr std::array of_damage = {"checksum", "read request failed", "signature", "addr overflow"};
    if (why == 0 &&
        std::ranges::any_of(of_damage, [&](const char* text) { return error.message.find(text) != std::string::npos; }))
        reason = "the file is damaged; restore it from a backup, or make the trace again";
    throw Failure(fmt::format("cannot {}: {}", action, reason), error.truncated && why == 0, why);
}
template hid_t checked(hid_t, const std::string&);
template int checked(int, const std::string&);

void note_system_error(int error) { noted_error = error; }

void throw_unreadable(const std::string& where, const Failure& failure) {
    const std::string message = fmt::format("{}: {}", where, failure.what());
    if (failure.system_error != 0) throw ReadFailed(message);
    throw DamagedTrace(message);
}

bool exists(hid_t location, const std::string& path) {
    const auto is_there = [&](htri_t answer) {
        if (answer < 0 && noted_error != 0) checked(answer, fmt::format("look up {}", path));
        return answer > 0;
    };
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (part != "/" && !is_there(H5Lexists(location, part.c_str(), H5P_DEFAULT))) return false;
        H5L_info_t link{};
        if (part != "/" && H5Lget_info(location, part.c_str(), &link, H5P_DEFAULT) >= 0 && link.type != H5L_TYPE_HARD &&
            link.type != H5L_TYPE_SOFT) {
            throw Failure(fmt::format("{} is a link to another file; kvscope does not follow such links", part), false);
        }
        if (end == std::string::npos) break;
    }
    return path == "/" || is_there(H5Oexists_by_name(location, path.c_str(), H5P_DEFAULT));
}

bool is_group(hid_t location, const std::string& path) {
    if (!exists(location, path)) return false;
    H5O_info_t found;
    return H5Oget_info_by_name2(location, path.c_str(), &found, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           found.type == H5O_TYPE_GROUP;
}

Handle open_group(hid_t location, const std::string& path) {
    return {checked(H5Gopen2(location, path.c_str(), H5P_DEFAULT), fmt::format("open the group {}", path)), H5Gclose};
}

Handle create_group(hid_t location, const std::string& path) {
    const std::string action = fmt::format("create the group {}", path);
    const Handle links = link_properties();
    const Handle creation(checked(H5Pcreate(H5P_GROUP_CREATE), action), H5Pclose);
    // Attributes in the object header take fewer bytes than attributes in a heap, and a checksum protects the header.
    checked(H5Pset_attr_phase_change(creation.get(), 64, 48), action);
    return {checked(H5Gcreate2(location, path.c_str(), links.get(), creation.get(), H5P_DEFAULT), action), H5Gclose};
}

Handle link_properties() {
    Handle links(checked(H5Pcreate(H5P_LINK_CREATE), "create a path"), H5Pclose);
    checked(H5Pset_create_intermediate_group(links.get(), 1), "create a path");
    return links;
}

std::vector<std::string> members(hid_t location, const std::string& path) {
    const Handle group = open_group(location, path);
    std::vector<std::string> names;
    const auto add = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
        static_cast<std::vector<std::string>*>(data)->emplace_back(name);
        return 0;
    };
    checked(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add, &names),
            fmt::format("list the group {}", path));
    const auto key = [](const std::string& name) {
        const bool number = !name.empty() &&
                            std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
        return std::tuple(number ? 0 : 1, number ? name.size() : 0, name);
    };
    std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
    return names;
}

std::uint64_t address(hid_t location, const std::string& path) {
    H5O_info_t found;
    checked(H5Oget_info_by_name2(location, path.c_str(), &found, H5O_INFO_BASIC, H5P_DEFAULT),
            fmt::format("look up {}", path));
    return found.addr;
}

bool is_plausible_size(std::uint64_t bytes, std::uint64_t stored_bytes) {
    // Deflate saves at most a factor of 1032. Small sizes are always plausible, because unwritten chunks take no bytes.
    constexpr std::uint64_t floor = std::uint64_t{64} << 20;
    return bytes <= floor || (bytes - floor) / 1100 <= stored_bytes;
}

}  // namespace kvscope::trace::h5

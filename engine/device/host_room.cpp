#include "engine/device/host_room.h"

#include <ATen/Functions.h>

namespace kvscope::engine {

at::Tensor HostRoom::copy(const at::Tensor& there) {
    if (there.is_cpu()) return there;
    const auto n = static_cast<int64_t>(there.nbytes());
    const bool is_held = bytes_.defined() && bytes_.storage().use_count() > 1;
    if (!bytes_.defined() || is_held || bytes_.numel() < n) {
        // A card writes into pinned memory several times as fast. Where one copy is held on to, so will the others be,
        // and those are not pinned, nor is much memory at once.
        constexpr int64_t most_pinned = int64_t{64} << 20;
        const bool pinned = there.is_cuda() && !is_held && n <= most_pinned;
        bytes_ = at::empty({n}, at::TensorOptions().dtype(at::kByte).pinned_memory(pinned));
    }
    at::Tensor here = bytes_.narrow(0, 0, n).view(there.scalar_type()).view(there.sizes());
    here.copy_(there);
    return here;
}

}  // namespace kvscope::engine

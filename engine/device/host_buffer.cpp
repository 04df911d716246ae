#include "engine/device/host_buffer.h"

#include <c10/util/Exception.h>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

at::Tensor HostBuffer::copy(const at::Tensor& there) {
    if (there.is_cpu()) return there;
    const auto n = static_cast<int64_t>(there.nbytes());
    const bool is_held = bytes_.defined() && bytes_.storage().use_count() > 1;
    if (!bytes_.defined() || is_held || bytes_.numel() < n) {
        // Copies to pinned memory are several times faster, but the system limits such memory.
        constexpr int64_t most_pinned = int64_t{64} << 20;
        const auto options = at::TensorOptions().dtype(at::kByte);
        bytes_.reset();
        if (there.is_cuda() && !is_held && n <= most_pinned) {
            try {
                bytes_ = at::empty({n}, options.pinned_memory(true));
            } catch (const c10::Error&) {  // the system may limit pinned memory
            }
        }
        if (!bytes_.defined()) bytes_ = at::empty({n}, options);
    }
    at::Tensor here = bytes_.narrow(0, 0, n).view(there.scalar_type()).view(there.sizes());
    here.copy_(there);
    return here;
}

}  // namespace kvscope::engine

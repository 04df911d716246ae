#pragma once

namespace kvscope::engine {

/// While an object exists on any thread, memory of deleted large CPU tensors is kept for new tensors of the same size,
/// up to 256 MiB. The last object to be destroyed releases this memory. New pages for each layer's activations would
/// make a prefill about 15 % slower.
class KeptTensorMemory {
 public:
    KeptTensorMemory();
    ~KeptTensorMemory();
    KeptTensorMemory(const KeptTensorMemory&) = delete;
    KeptTensorMemory& operator=(const KeptTensorMemory&) = delete;
};

}  // namespace kvscope::engine

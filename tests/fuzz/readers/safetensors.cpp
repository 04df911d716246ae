#include "engine/files/safetensors.h"

#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader safetensors_reader() {
    return {"safetensors", [](std::string_view bytes) {
                const auto path = scratch_file("model.safetensors", bytes);
                may_refuse([&] {
                    const checkpoint::SafetensorsFile file(path);
                    for (const auto& [name, entry] : file.entries()) {
                        size_t n = 1;
                        for (const int64_t extent : entry.shape) n *= static_cast<size_t>(extent);
                        if (!checkpoint::is_readable_dtype(entry.dtype)) continue;
                        std::vector<float> values(n);
                        file.read_f32(entry, values);
                        std::vector<uint16_t> halves(n);
                        file.read_bf16(entry, halves);
                        file.same_bytes(entry, file, entry);
                    }
                });
            }};
}

}  // namespace kvscope::fuzz

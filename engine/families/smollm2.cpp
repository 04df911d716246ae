#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family llama_family();  // NOLINT(readability-redundant-declaration): a batch may contain both files

/// A family of its own only because its models differ from Llama's in training.
Family smollm2_family() {
    Family family = llama_family();
    family.name = "smollm2";
    family.title = "SmolLM2";
    family.part_of_name = "smollm2";
    return family;
}

}  // namespace kvscope::checkpoint

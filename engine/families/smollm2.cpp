#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family llama_family();  // NOLINT(readability-redundant-declaration): a unity build may compile both files as one

/// Computes like Llama. The separate family only names the models.
Family smollm2_family() {
    Family family = llama_family();
    family.name = "smollm2";
    family.title = "SmolLM2";
    family.part_of_name = "smollm2";
    return family;
}

}  // namespace kvscope::checkpoint

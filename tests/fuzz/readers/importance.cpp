#include "policies/methods/head_importance.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader importance_reader() {
    return {"importance", [](std::string_view bytes) {
                const auto path = scratch_file("importance.json", bytes);
                policies::ModelShape shape;
                shape.n_layers = 2;
                shape.n_heads = 2;
                shape.n_kv_heads = 1;
                shape.head_dim = 8;
                may_refuse([&] { policies::read_head_importance(path, shape); });
            }};
}

}  // namespace kvscope::fuzz

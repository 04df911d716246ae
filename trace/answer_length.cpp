#include "trace/answer_length.h"

namespace kvscope::trace {

std::int64_t answer_length(const Reader& reader, int prompt, int run) {
    const Place place = Place::of_run(prompt, run);
    if (!reader.has(place, schema::run::output_ids)) return 0;
    return static_cast<std::int64_t>(reader.shape(place, schema::run::output_ids).at(0));
}

}  // namespace kvscope::trace

#include "analysis/measures/bytes_share.h"

#include <limits>
#include <numeric>

namespace kvscope::analysis {
namespace {

double bytes_of(const trace::Reader& reader, int prompt, int run, const trace::schema::DataSet& data_set) {
    const auto place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, data_set)) return std::numeric_limits<double>::quiet_NaN();
    const auto bytes = reader.read<uint64_t>(place, data_set);
    return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

}  // namespace

double share_of_full_bytes(const trace::Reader& reader, int prompt, int run) {
    for (int full = 0; full < reader.n_runs(prompt); ++full) {
        if (!reader.run(prompt, full).is_full()) continue;
        for (const auto* data_set : {&trace::schema::run::cache_bytes, &trace::schema::run::cache_bytes_predicted}) {
            const double all = bytes_of(reader, prompt, full, *data_set);
            const double share = bytes_of(reader, prompt, run, *data_set) / all;
            if (all > 0 && share >= 0) return share;
        }
    }
    return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvscope::analysis

#pragma once

// Templates on the level's types, so that the linker cannot mix code of different levels. Included once per SIMD level.

#include <cstddef>
#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/attention_block.h"

namespace kvscope::kernels {

template <class Simd>
struct F32Products {
    using elem = float;
    using operand = typename Simd::vec;
    static constexpr int per_step = 1;
    static constexpr bool wants_packed_bf16 = false;
    [[nodiscard]] static operand load(const elem* p) { return Simd::load(p); }
    [[nodiscard]] static operand broadcast(const elem* p) { return Simd::set1(*p); }
    [[nodiscard]] static typename Simd::vec mac(typename Simd::vec acc, operand a, operand b) {
        return Simd::fma(a, b, acc);
    }
};

/// Flash attention with one query per lane, so that the softmax needs no horizontal operations and only values are
/// packed. A lane group has three vectors; each holds `lanes` consecutive queries of one head. For each panel
/// of keys:
///   S (keys x lanes) = K Q^T      register tiles of tile_rows keys x 3 vectors
///   P = exp2(S c - m)             m: running maximum per lane, c = scale log2 e
///   O (d x lanes) = O 2^(m' - m) + V^T P
/// Panels begin at multiples of panel_keys, so that results do not depend on how a chunk is split.
template <class Simd, class Products>
struct AttentionBlockBody {
    using vec = typename Simd::vec;
    using elem = typename Products::elem;
    static constexpr int lanes = Simd::lanes;
    static constexpr int tile_rows = Simd::tile_rows;
    static constexpr int group_lanes = 3 * lanes;  ///< lanes of a group
    static constexpr int64_t panel_keys = 256;
    static constexpr int lane_groups = 4;                         ///< lane groups per block, which share packed panels
    static constexpr float masked_logit = -1e30f;                 ///< logit of a key that a query does not see
    static constexpr float lowest_maximum = -1e20f;               ///< running maximum before the first key
    static constexpr size_t kept_weight_bytes = size_t{4} << 20;  ///< bytes of one lane group's kept weights

    [[nodiscard]] static int queries_per_block(int group) {
        int parts = 1;
        while (group * parts % 3 != 0 || group * parts < 3 * lane_groups) ++parts;
        return parts * lanes;
    }

    [[nodiscard]] static int fewest_queries(int group) { return group % 3 == 0 ? lanes : 3 * lanes; }

    [[nodiscard]] static constexpr size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

    [[nodiscard]] static int64_t panels(int64_t n_keys) { return (n_keys + panel_keys - 1) / panel_keys + 1; }

    /// Number of keys of the longest prompt whose weights are kept.
    static constexpr int64_t most_kept_keys =
        (static_cast<int64_t>(kept_weight_bytes / (panel_keys * group_lanes * sizeof(float))) - 1) * panel_keys;
    [[nodiscard]] static bool keeps_weights(int64_t n_keys) { return n_keys <= most_kept_keys; }

    struct Layout {
        int64_t n_groups, steps;
        size_t q, o, m, l, maxima, references, k_panel, v_panel, weights, p, total;

        Layout(int64_t groups, int head_dim, int64_t n_keys, bool columns)
            : n_groups(groups), steps((head_dim + Products::per_step - 1) / Products::per_step) {
            size_t at = 0;
            const auto place = [&at](size_t count) {
                const size_t begin = at;
                at += align(count * sizeof(float));
                return begin;
            };
            q = place(static_cast<size_t>(groups * steps * group_lanes));
            o = place(static_cast<size_t>(groups * head_dim * group_lanes));
            m = place(static_cast<size_t>(groups * group_lanes));
            l = place(static_cast<size_t>(groups * group_lanes));
            maxima = place(group_lanes);
            references = place(columns ? static_cast<size_t>(panels(n_keys) * group_lanes) : 0);
            k_panel = place(static_cast<size_t>(panel_keys * head_dim));
            const bool whole = columns && keeps_weights(n_keys);
            v_panel = place(static_cast<size_t>((whole ? panels(n_keys) : 1) * panel_keys * head_dim));
            weights = place(static_cast<size_t>((whole ? panels(n_keys) : 1) * panel_keys * group_lanes));
            p = place(static_cast<size_t>(panel_keys * group_lanes));
            total = at;
        }
    };

    [[nodiscard]] static size_t scratch_bytes(int group, int head_dim, int64_t n_keys, bool columns) {
        const int64_t groups = (static_cast<int64_t>(queries_per_block(group) / lanes) * group + 2) / 3;
        const size_t all = Layout(groups, head_dim, n_keys, columns).total;
        if (!columns || keeps_weights(n_keys)) return all;
        // A shorter block that keeps its weights can need more scratch than a longer block that does not.
        const size_t kept = Layout(groups, head_dim, most_kept_keys, columns).total;
        return kept > all ? kept : all;
    }

    /// A vector of `lanes` queries of one head. Heads vary fastest within a block.
    struct Vector {
        int head;
        int64_t first;  ///< first query, relative to the block
        int64_t count;  ///< 0 ... lanes; 0 for padding vectors of a lane group
    };

    struct State {
        const AttentionBlock& block;
        Layout layout;
        char* scratch = nullptr;
        int64_t n_vectors = 0;
        int64_t values_packed = 0;  ///< first key whose values are not packed

        [[nodiscard]] float* at(size_t place) const { return reinterpret_cast<float*>(scratch + place); }
        [[nodiscard]] elem* q(int64_t g) const {
            return reinterpret_cast<elem*>(scratch + layout.q) + g * layout.steps * group_lanes;
        }
        [[nodiscard]] float* o(int64_t g) const { return at(layout.o) + g * block.head_dim * group_lanes; }
        [[nodiscard]] float* m(int64_t g) const { return at(layout.m) + g * group_lanes; }
        [[nodiscard]] float* l(int64_t g) const { return at(layout.l) + g * group_lanes; }
        [[nodiscard]] float* maxima() const { return at(layout.maxima); }

        [[nodiscard]] Vector vector(int64_t index) const {
            if (index >= n_vectors) return {0, 0, 0};
            const int64_t first = index / block.group * lanes;
            const int64_t left = block.n_queries - first;
            return {static_cast<int>(index % block.group), first, left < lanes ? left : lanes};
        }
        [[nodiscard]] int64_t first_query(int64_t g) const { return vector(3 * g).first; }
        [[nodiscard]] int64_t last_query(int64_t g) const {
            const int64_t index = 3 * g + 2 < n_vectors ? 3 * g + 2 : n_vectors - 1;
            const Vector last = vector(index);
            return last.first + last.count - 1;
        }
        [[nodiscard]] int64_t key_begin(int64_t g) const { return first_visible_key(block, first_query(g)); }
        [[nodiscard]] int64_t key_end(int64_t g) const {
            const int64_t end = block.q_position + last_query(g) + 1;
            return end < block.key_end ? end : block.key_end;
        }
    };

    static void compute(const AttentionBlock& block, void* scratch) {
        const int64_t n_vectors = (block.n_queries + lanes - 1) / lanes * block.group;
        const int64_t n_groups = (n_vectors + 2) / 3;
        State state{block, Layout(n_groups, block.head_dim, block.key_end, block.column_sums != nullptr),
                    static_cast<char*>(scratch), n_vectors};
        for (int64_t g = 0; g < n_groups; ++g) begin_group(state, g);
        if (block.column_sums == nullptr) {
            attend(state, 0, n_groups);
        } else {
            const int64_t first = first_visible_key(block);
            for (int h = 0; h < block.group; ++h)
                for (int64_t j = first; j < block.key_end; ++j) block.column_sums[h * block.column_stride + j] = 0;
            for (int64_t g = 0; g < n_groups; ++g) {
                attend(state, g, g + 1);
                add_columns(state, g);
            }
        }
        if (block.out != nullptr)
            for (int64_t g = 0; g < n_groups; ++g) write_output(state, g);
    }

    [[nodiscard]] static float element(const void* data, DType dtype, int64_t index) {
        return dtype == DType::f32 ? static_cast<const float*>(data)[index]
                                   : to_float(static_cast<const bf16*>(data)[index]);
    }

    static void begin_group(const State& state, int64_t g) {
        const AttentionBlock& block = state.block;
        elem* q = state.q(g);
        for (int64_t i = 0; i < state.layout.steps * group_lanes; ++i) q[i] = 0;
        for (int part = 0; part < 3; ++part) {
            const Vector vector = state.vector(3 * g + part);
            for (int64_t i = 0; i < vector.count; ++i) {
                const int64_t from = (vector.first + i) * block.q_token_stride + vector.head * block.q_head_stride;
                elem* to = q + part * lanes + i;
                if constexpr (Products::wants_packed_bf16) {
                    const bf16* row = static_cast<const bf16*>(block.q) + from;
                    for (int64_t s = 0; s < state.layout.steps; ++s)
                        to[s * group_lanes] = row[2 * s].bits | static_cast<uint32_t>(row[2 * s + 1].bits) << 16;
                } else {
                    for (int64_t s = 0; s < state.layout.steps; ++s)
                        to[s * group_lanes] = element(block.q, block.q_dtype, from + s);
                }
            }
        }
        for (int64_t i = 0; i < group_lanes; ++i) {
            state.m(g)[i] = lowest_maximum;
            state.l(g)[i] = 0;
        }
        if (block.out != nullptr)
            for (int64_t i = 0; i < block.head_dim * group_lanes; ++i) state.o(g)[i] = 0;
    }

    struct Panel {
        const elem* data;
        int64_t stride;  ///< elements between keys (of k) or steps (of v)
    };

    static void widen(const bf16* from, float* to, int64_t count) {
        int64_t i = 0;
        for (; i + lanes <= count; i += lanes) Simd::store(to + i, Simd::load_bf16(from + i));
        for (; i < count; ++i) to[i] = to_float(from[i]);
    }

    [[nodiscard]] static Panel key_panel(const State& state, int64_t begin, int64_t count) {
        const AttentionBlock& block = state.block;
        const int64_t d = block.head_dim;
        if constexpr (Products::wants_packed_bf16) {
            return {reinterpret_cast<const elem*>(static_cast<const bf16*>(block.k) + begin * d), d / 2};
        } else {
            if (block.kv_dtype == DType::f32) return {static_cast<const float*>(block.k) + begin * d, d};
            float* panel = state.at(state.layout.k_panel);
            widen(static_cast<const bf16*>(block.k) + begin * d, panel, count * d);
            return {panel, d};
        }
    }

    [[nodiscard]] static bool keeps_panels(const State& state) {
        return state.block.column_sums != nullptr && keeps_weights(state.block.key_end);
    }

    [[nodiscard]] static Panel value_panel(State& state, int64_t begin, int64_t count) {
        const AttentionBlock& block = state.block;
        const int64_t d = block.head_dim;
        if (block.kv_dtype == DType::f32 && !Products::wants_packed_bf16)
            return {reinterpret_cast<const elem*>(block.v) + begin * d, d};
        elem* panel = reinterpret_cast<elem*>(state.at(state.layout.v_panel));
        if (keeps_panels(state)) {
            panel += begin / Products::per_step * d;
            if (begin < state.values_packed) return {panel, d};
            count = block.key_end - begin < panel_keys ? block.key_end - begin : panel_keys;
            state.values_packed = begin + count;
        }
        const bf16* from = static_cast<const bf16*>(block.v) + begin * d;
        if constexpr (Products::wants_packed_bf16)
            Products::interleave(from, count, d, panel);
        else
            widen(from, panel, count * d);
        return {panel, d};
    }

    static void attend(State& state, int64_t from, int64_t to) {
        const int64_t begin = state.key_begin(from), end = state.key_end(to - 1);
        for (int64_t panel = begin / panel_keys * panel_keys; panel < end; panel += panel_keys) {
            const int64_t panel_end = panel + panel_keys < end ? panel + panel_keys : end;
            const Panel keys = key_panel(state, panel, panel_end - panel);
            Panel values{nullptr, 0};
            if (state.block.out != nullptr) values = value_panel(state, panel, panel_end - panel);
            for (int64_t g = from; g < to; ++g) {
                const int64_t group_end = state.key_end(g) < panel_end ? state.key_end(g) : panel_end;
                if (group_end <= panel || panel + panel_keys <= state.key_begin(g)) continue;
                attend_panel(state, g, panel, group_end - panel, keys, values);
            }
        }
    }

    [[nodiscard]] static float* weights_of(const State& state, int64_t panel) {
        return state.at(state.layout.weights) + (keeps_panels(state) ? panel * group_lanes : 0);
    }

    static void attend_panel(const State& state, int64_t g, int64_t panel, int64_t n_keys, Panel keys, Panel values) {
        float* s = weights_of(state, panel);
        logits(state, g, panel, n_keys, keys, s);

        const vec c = Simd::set1(state.block.scale * 1.4426950408889634f);
        vec reference[3], correction[3];
        for (int j = 0; j < 3; ++j) {
            const vec before = Simd::load(state.m(g) + j * lanes);
            reference[j] = Simd::max(before, Simd::mul(Simd::load(state.maxima() + j * lanes), c));
            correction[j] = Simd::exp2(Simd::sub(before, reference[j]));
            Simd::store(state.m(g) + j * lanes, reference[j]);
            if (state.block.column_sums != nullptr)
                Simd::store(state.at(state.layout.references) + panel / panel_keys * group_lanes + j * lanes,
                            reference[j]);
        }

        vec total[3];
        elem* p = reinterpret_cast<elem*>(state.at(state.layout.p));
        const float* n = state.block.cardinality ? state.block.cardinality + panel : nullptr;
        if (state.block.column_sums != nullptr)
            weigh<true>(s, n_keys, n, c, reference, p, total);
        else
            weigh<false>(s, n_keys, n, c, reference, p, total);
        for (int j = 0; j < 3; ++j)
            Simd::store(state.l(g) + j * lanes, Simd::fma(Simd::load(state.l(g) + j * lanes), correction[j], total[j]));

        if (state.block.out != nullptr) {
            const elem* weights = p;
            if constexpr (!Products::wants_packed_bf16) weights = s;
            add_values(weights, values, (n_keys + Products::per_step - 1) / Products::per_step, state.block.head_dim,
                       correction, state.o(g));
        }
    }

    /// acc[i][j] = sum over steps of a[i * a_row + s * a_step] * b[s][j].
    template <int Rows>
    [[gnu::always_inline]] static inline void product(const elem* a, int64_t a_row, int64_t a_step, const elem* b,
                                                      int64_t steps, vec (&acc)[Rows][3]) {
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) acc[i][j] = Simd::zero();
        for (int64_t s = 0; s < steps; ++s) {
            const typename Products::operand b0 = Products::load(b), b1 = Products::load(b + lanes),
                                             b2 = Products::load(b + 2 * lanes);
            b += group_lanes;
#pragma GCC unroll 8
            for (int i = 0; i < Rows; ++i) {
                const typename Products::operand x = Products::broadcast(a + i * a_row);
                acc[i][0] = Products::mac(acc[i][0], x, b0);
                acc[i][1] = Products::mac(acc[i][1], x, b1);
                acc[i][2] = Products::mac(acc[i][2], x, b2);
            }
            a += a_step;
        }
    }

    struct Visible {
        vec low[3], high[3];
        int64_t free_begin, free_end;  ///< keys that every lane sees
    };

    [[nodiscard]] static Visible visible(const State& state, int64_t g, int64_t panel) {
        const AttentionBlock& block = state.block;
        Visible result;  // NOLINT(*-member-init): filled below
        const int64_t last = state.last_query(g);
        result.free_begin = first_visible_key(block, last) - panel;
        result.free_end = block.q_position + state.first_query(g) + 1 - panel;
        float high[group_lanes];
        float low[group_lanes];
        for (int part = 0; part < 3; ++part) {
            const Vector vector = state.vector(3 * g + part);
            // Lanes without a query see nothing. Otherwise their zeros times a non-finite key would give NaN.
            if (vector.count < lanes) result.free_end = 0;
            for (int i = 0; i < lanes; ++i) {
                const bool exists = i < vector.count;
                const int64_t query = exists ? vector.first + i : last;
                const int64_t to = exists ? block.q_position + query - panel : -1,
                              begin = first_visible_key(block, query) - panel;
                high[part * lanes + i] = static_cast<float>(to < panel_keys ? (to < -1 ? -1 : to) : panel_keys);
                low[part * lanes + i] = static_cast<float>(begin > 0 ? (begin < panel_keys ? begin : panel_keys) : 0);
            }
        }
        for (int j = 0; j < 3; ++j) {
            result.low[j] = Simd::load(low + j * lanes);
            result.high[j] = Simd::load(high + j * lanes);
        }
        return result;
    }

    /// Masks keys that a lane does not see. Inlined constants would take registers from the tile functions.
    template <int Rows>
    [[gnu::noinline]] static void mask(const Visible& seen, int64_t key, float* s) {
        for (int i = 0; i < Rows; ++i)
            for (int j = 0; j < 3; ++j) {
                float* at = s + i * group_lanes + j * lanes;
                Simd::store(at, Simd::select_between(Simd::load(at), Simd::set1(static_cast<float>(key + i)),
                                                     seen.low[j], seen.high[j], Simd::set1(masked_logit)));
            }
    }

    template <int Rows>
    [[gnu::always_inline]] static inline void logit_tile(const elem* keys, int64_t stride, const elem* q, int64_t steps,
                                                         int64_t key, const Visible& seen, float* s, float* maxima) {
        vec acc[Rows][3];
        product<Rows>(keys + key * stride, stride, 1, q, steps, acc);
        s += key * group_lanes;
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) Simd::store(s + i * group_lanes + j * lanes, acc[i][j]);
        if (key < seen.free_begin || key + Rows > seen.free_end) mask<Rows>(seen, key, s);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
            vec largest = Simd::load(maxima + j * lanes);
#pragma GCC unroll 8
            for (int i = 0; i < Rows; ++i) largest = Simd::max(largest, Simd::load(s + i * group_lanes + j * lanes));
            Simd::store(maxima + j * lanes, largest);
        }
    }

    /// Computes a panel's unscaled S and each lane's maximum. With the maxima in registers, GCC would spill sums.
    static void logits(const State& state, int64_t g, int64_t panel, int64_t n_keys, Panel keys, float* s) {
        const Visible seen = visible(state, g, panel);
        const elem* q = state.q(g);
        const int64_t steps = state.layout.steps;
        float* maxima = state.maxima();
        for (int j = 0; j < 3; ++j) Simd::store(maxima + j * lanes, Simd::set1(masked_logit));
        int64_t key = 0;
        for (; key + tile_rows <= n_keys; key += tile_rows)
            logit_tile<tile_rows>(keys.data, keys.stride, q, steps, key, seen, s, maxima);
        for (; key < n_keys; ++key) logit_tile<1>(keys.data, keys.stride, q, steps, key, seen, s, maxima);
    }

    /// Computes P = exp2(S c - reference) in place (f32) or as pairs at p (bf16). `total` is the sum of n_i P.
    template <bool keep>
    static void weigh(float* s, int64_t n_keys, const float* n, vec c, const vec (&reference)[3], elem* p,
                      vec (&total)[3]) {
        if (n != nullptr)
            weigh_counted<keep, true>(s, n_keys, n, c, reference, p, total);
        else
            weigh_counted<keep, false>(s, n_keys, n, c, reference, p, total);
    }

    template <bool counted>
    [[nodiscard]] [[gnu::always_inline]] static inline vec add_counted(vec sum, vec p, const float* n, int64_t key) {
        if constexpr (counted)
            return Simd::fma(p, Simd::set1(n[key]), sum);
        else
            return Simd::add(sum, p);
    }

    template <bool keep, bool counted>
    static void weigh_counted(float* s, int64_t n_keys, const float* n, vec c, const vec (&reference)[3], elem* p,
                              vec (&total)[3]) {
        constexpr bool in_place = keep || !Products::wants_packed_bf16;
        vec even[3], odd[3], minus[3];
        for (int j = 0; j < 3; ++j) {
            even[j] = odd[j] = Simd::zero();
            minus[j] = Simd::sub(Simd::zero(), reference[j]);
        }
        int64_t key = 0;
        for (; key + 2 <= n_keys; key += 2)
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) {
                float* s0 = s + key * group_lanes + j * lanes;
                const vec p0 = Simd::exp2(Simd::fma(Simd::load(s0), c, minus[j]));
                const vec p1 = Simd::exp2(Simd::fma(Simd::load(s0 + group_lanes), c, minus[j]));
                even[j] = add_counted<counted>(even[j], p0, n, key);
                odd[j] = add_counted<counted>(odd[j], p1, n, key + 1);
                if constexpr (Products::wants_packed_bf16)
                    Products::store_pair(p + key / 2 * group_lanes + j * lanes, p0, p1);
                if constexpr (in_place) {
                    Simd::store(s0, p0);
                    Simd::store(s0 + group_lanes, p1);
                }
            }
        for (int j = 0; j < 3; ++j) {
            if (key < n_keys) {
                float* s0 = s + key * group_lanes + j * lanes;
                const vec p0 = Simd::exp2(Simd::fma(Simd::load(s0), c, minus[j]));
                even[j] = add_counted<counted>(even[j], p0, n, key);
                if constexpr (Products::wants_packed_bf16)
                    Products::store_pair(p + key / 2 * group_lanes + j * lanes, p0, Simd::zero());
                if constexpr (in_place) Simd::store(s0, p0);
            }
            total[j] = Simd::add(even[j], odd[j]);
        }
    }

    template <int Rows>
    static void value_tile(const elem* p, const elem* values, int64_t stride, int64_t steps, const vec (&correction)[3],
                           float* o) {
        vec acc[Rows][3];
        product<Rows>(values, 1, stride, p, steps, acc);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) {
                float* at = o + i * group_lanes + j * lanes;
                Simd::store(at, Simd::fma(Simd::load(at), correction[j], acc[i][j]));
            }
    }

    static void add_values(const elem* p, Panel values, int64_t steps, int64_t d, const vec (&correction)[3],
                           float* o) {
        int64_t c = 0;
        for (; c + tile_rows <= d; c += tile_rows)
            value_tile<tile_rows>(p, values.data + c, values.stride, steps, correction, o + c * group_lanes);
        for (; c < d; ++c) value_tile<1>(p, values.data + c, values.stride, steps, correction, o + c * group_lanes);
    }

    /// Returns 1 / l per lane, 0 if the lane saw no key, NaN if l is NaN.
    [[nodiscard]] static vec inverse_total(const State& state, int64_t g, int part) {
        const vec l = Simd::load(state.l(g) + part * lanes);
        const vec one = Simd::set1(1.0f);
        return Simd::select_between(Simd::zero(), l, Simd::set1(-1.0f), Simd::set1(1e-30f), Simd::div(one, l));
    }

    template <class T>
    static void store_row(T* to, vec x) {
        if constexpr (sizeof(T) == 4)
            Simd::store(to, x);
        else
            Simd::store_bf16(to, x);
    }

    template <class T>
    static void write_vector(const State& state, int64_t g, int part, T* out) {
        const AttentionBlock& block = state.block;
        const Vector vector = state.vector(3 * g + part);
        const vec inverse = inverse_total(state, g, part);
        const int64_t d = block.head_dim;
        for (int64_t c = 0; c < d; c += lanes) {
            const int64_t width = d - c < lanes ? d - c : lanes;
            vec tile[lanes];
            for (int64_t i = 0; i < lanes; ++i)
                tile[i] = i < width ? Simd::mul(Simd::load(state.o(g) + (c + i) * group_lanes + part * lanes), inverse)
                                    : Simd::zero();
            Simd::transpose(tile);
            for (int64_t i = 0; i < vector.count; ++i) {
                T* to = out + (vector.first + i) * block.out_token_stride + vector.head * block.out_head_stride + c;
                if (width == lanes) {
                    store_row(to, tile[i]);
                } else {
                    T row[lanes];
                    store_row(row, tile[i]);
                    for (int64_t e = 0; e < width; ++e) to[e] = row[e];
                }
            }
        }
    }

    static void write_output(const State& state, int64_t g) {
        for (int part = 0; part < 3; ++part) {
            if (state.block.out_dtype == DType::f32)
                write_vector(state, g, part, static_cast<float*>(state.block.out));
            else
                write_vector(state, g, part, static_cast<bf16*>(state.block.out));
        }
    }

    /// Adds a lane group's weights to the column sums. Computes the logits of long prompts again.
    static void add_columns(const State& state, int64_t g) {
        const AttentionBlock& block = state.block;
        const int64_t begin = state.key_begin(g), end = state.key_end(g);
        const bool kept = keeps_weights(block.key_end);
        const vec c = Simd::set1(block.scale * 1.4426950408889634f);
        // Goes backwards, because the last panel is still in the second-level cache.
        for (int64_t panel = (end - 1) / panel_keys * panel_keys; panel + panel_keys > begin; panel -= panel_keys) {
            const int64_t n_keys = panel + panel_keys < end ? panel_keys : end - panel;
            float* weights = weights_of(state, panel);
            vec factor[3];
            for (int j = 0; j < 3; ++j) {
                const vec final = Simd::load(state.m(g) + j * lanes);
                const vec then =
                    kept ? Simd::load(state.at(state.layout.references) + panel / panel_keys * group_lanes + j * lanes)
                         : final;
                factor[j] = Simd::mul(Simd::exp2(Simd::sub(then, final)), inverse_total(state, g, j));
            }
            if (!kept) {
                vec unused[3], reference[3];
                logits(state, g, panel, n_keys, key_panel(state, panel, n_keys), weights);
                for (int j = 0; j < 3; ++j) reference[j] = Simd::load(state.m(g) + j * lanes);
                weigh<true>(weights, n_keys, nullptr, c, reference, reinterpret_cast<elem*>(state.at(state.layout.p)),
                            unused);
            }
            for (int j = 0; j < 3; ++j) {
                const Vector vector = state.vector(3 * g + j);
                if (vector.count == 0) continue;
                float is_query[lanes];
                for (int i = 0; i < lanes; ++i) is_query[i] = i < vector.count ? 1.0f : 0.0f;
                factor[j] = Simd::mul(factor[j], Simd::load(is_query));
                add_column_vector(weights + j * lanes, n_keys, factor[j],
                                  block.column_sums + vector.head * block.column_stride + panel);
            }
        }
    }

    static void add_column_vector(const float* weights, int64_t n_keys, vec factor, float* sums) {
        int64_t key = 0;
        for (; key + lanes <= n_keys; key += lanes) {
            vec folded[lanes / 4];
#pragma GCC unroll 4
            for (int i = 0; i < lanes / 4; ++i) {
                const float* row = weights + (key + 4 * i) * group_lanes;
                folded[i] =
                    Simd::fold(Simd::mul(Simd::load(row), factor), Simd::mul(Simd::load(row + group_lanes), factor),
                               Simd::mul(Simd::load(row + 2 * group_lanes), factor),
                               Simd::mul(Simd::load(row + 3 * group_lanes), factor));
            }
            Simd::store(sums + key, Simd::add(Simd::load(sums + key), Simd::join_folded(folded)));
        }
        for (; key < n_keys; ++key) sums[key] += Simd::sum(Simd::mul(Simd::load(weights + key * group_lanes), factor));
    }
};

}  // namespace kvscope::kernels

// Runs that exist only in memory, next to runs of a file.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/trace/sample_trace.h"
#include "trace/reader.h"
#include "trace/records/record_fields.h"

using namespace kvscope::trace;
using Catch::Matchers::Contains;

namespace {

// Compares bits, so that NaN equals NaN.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Checks that the added run gives the same answers as the run in the file.
void require_same(const Reader& reader, int prompt, int in_file, int added) {
    const Place a = Place::of_run(prompt, in_file), b = Place::of_run(prompt, added);
    CHECK(reader.run(prompt, added).label == reader.run(prompt, in_file).label);
    CHECK(reader.runs(prompt)[static_cast<std::size_t>(added)].label == reader.run(prompt, in_file).label);
    CHECK(reader.n_rows(prompt, added) == reader.n_rows(prompt, in_file));
    for (const schema::DataSet* data_set : schema::run::data_sets) {
        INFO(data_set->path);
        REQUIRE(reader.has(b, *data_set) == reader.has(a, *data_set));
        if (!reader.has(a, *data_set)) {
            CHECK_THROWS_AS(reader.shape(b, *data_set), DamagedTrace);
            CHECK_THROWS_AS(reader.read<double>(b, *data_set), DamagedTrace);
            continue;
        }
        const std::vector<std::size_t> shape = reader.shape(a, *data_set);
        CHECK(reader.shape(b, *data_set) == shape);
        CHECK(same_bits(reader.read<float>(b, *data_set), reader.read<float>(a, *data_set)));
        CHECK(same_bits(reader.read<double>(b, *data_set), reader.read<double>(a, *data_set)));
        Block block;
        for (const std::size_t extent : shape) {
            block.first.push_back(extent / 3);
            block.count.push_back(extent / 2);
        }
        CHECK(same_bits(reader.read<double>(b, *data_set, block), reader.read<double>(a, *data_set, block)));
        block.count[0] = shape[0];
        CHECK_THROWS_AS(reader.read<double>(b, *data_set, block), std::out_of_range);
        CHECK(same_bits(reader.read_layer<double>(b, *data_set, 2), reader.read_layer<double>(a, *data_set, 2)));
        CHECK_THROWS_AS(reader.read_layer<double>(b, *data_set, shape[0]), std::out_of_range);
    }
    CHECK(same_bits(reader.scores(prompt, added, 1), reader.scores(prompt, in_file, 1)));
    if (reader.has(a, schema::run::kept_offsets)) {
        CHECK(reader.kept(prompt, added)->offsets == reader.kept(prompt, in_file)->offsets);
        CHECK(reader.kept(prompt, added)->indices == reader.kept(prompt, in_file)->indices);
        CHECK(reader.kept(prompt, added)->n_rows == reader.kept(prompt, in_file)->n_rows);
    } else {
        CHECK_THROWS_AS(reader.kept(prompt, added), DamagedTrace);
    }
    const RunRecord want = reader.run_record(prompt, in_file), found = reader.run_record(prompt, added);
    CHECK(found.output_text == want.output_text);
    CHECK(found.kept_offsets == want.kept_offsets);
    CHECK(found.kept_indices == want.kept_indices);
    CHECK(same_bits(found.scores, want.scores));
    CHECK(same_bits(found.scores_f64, want.scores_f64));
}

}  // namespace

TEST_CASE("an added run reads like one in the file", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = GENERATE(1, 2);
    sample::write_anew(folder / "t.h5", options);
    const int prompt = options.n_questions - 1;
    Reader reader(folder / "t.h5");
    const int in_file = reader.n_runs(prompt);
    for (int j = 0; j < in_file; ++j) reader = reader.with_run(prompt, reader.run_record(prompt, j));
    REQUIRE(reader.n_runs(prompt) == 2 * in_file);
    for (int j = 0; j < in_file; ++j) {
        INFO("run " << j);
        CHECK(reader.is_in_file(prompt, j));
        CHECK_FALSE(reader.is_in_file(prompt, in_file + j));
        CHECK(reader.run_number(prompt, in_file + j) == in_file + j);
        require_same(reader, prompt, j, in_file + j);
    }
    if (prompt > 0) CHECK(reader.n_runs(0) == in_file);
    CHECK(reader.full_run(prompt) == 0);
    CHECK_THROWS_AS(reader.is_in_file(prompt, 2 * in_file), std::out_of_range);
    CHECK_THROWS_AS(reader.is_in_file(prompt, -1), std::out_of_range);
    CHECK_THROWS_AS(reader.with_run(prompt + 1, {}), std::out_of_range);
}

TEST_CASE("readers with added runs share the data that they read, and nothing else", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    std::optional<Reader> plain(folder / "t.h5");
    const auto known = plain->kept(0, 1);
    RunRecord run = plain->run_record(0, 1);
    run.label = "what if";
    const Reader one = plain->with_run(0, run);
    run.label = "what else";
    const Reader other = plain->with_run(0, run);
    const Reader both = one.with_run(0, run);
    CHECK(plain->n_runs(0) == 7);
    CHECK(one.run(0, 7).label == "what if");
    CHECK(other.run(0, 7).label == "what else");
    CHECK(both.run(0, 7).label == "what if");
    CHECK(both.run(0, 8).label == "what else");
    CHECK(&both.prompt(0) == &plain->prompt(0));
    CHECK(one.kept(0, 1) == known);
    CHECK(both.kept(0, 7) == one.kept(0, 7));
    const auto read_later = both.kept(0, 2);
    CHECK(plain->kept(0, 2) == read_later);
    // The files stay open for the remaining readers.
    plain.reset();
    CHECK(one.scores(0, 1, 0).size() == 2 * 48);
}

TEST_CASE("an added run of an unfinished trace has the number after the last run", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    Writer writer(folder / "t.h5", sample::recipe);
    writer.write_model(sample::model(options));
    const PromptRecord prompt = sample::prompt(options);
    writer.write_prompt(0, prompt);
    const auto runs = sample::runs(options, prompt);
    const Reader empty = Reader(folder / "t.h5").with_run(0, runs[1]);
    CHECK(empty.n_runs(0) == 1);
    CHECK(empty.run_number(0, 0) == 0);
    CHECK_FALSE(empty.full_run(0));
    writer.write_run(0, 0, runs[0]);
    writer.write_run(0, 2, runs[2]);
    const Reader reader = Reader(folder / "t.h5").with_run(0, runs[1]).with_run(0, runs[3]);
    CHECK(reader.run_number(0, 1) == 2);
    CHECK(reader.run_number(0, 2) == 3);
    CHECK(reader.run_number(0, 3) == 4);
}

TEST_CASE("an added run that breaks the format is rejected with its name", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    const Reader reader(folder / "t.h5");
    const RunRecord good = reader.run_record(0, 1);
    const auto refusal = [&](auto spoil) -> std::string {
        RunRecord bad = good;
        spoil(bad);
        try {
            (void)reader.with_run(0, std::move(bad));
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "";
    };
    CHECK_THAT(refusal([](RunRecord& r) { r.scores.pop_back(); }),
               Contains("snapkv 16") && Contains("/scores") && Contains("(3, 2, 48)") && Contains("287"));
    CHECK_THAT(refusal([](RunRecord& r) { r.kept_offsets.pop_back(); }),
               Contains("kept_offsets") && Contains("expected 7") && Contains("found 6"));
    CHECK_THAT(refusal([](RunRecord& r) { r.kept_indices[15] = 48; }),
               Contains("kept_indices") && Contains("below 48"));
    CHECK_THAT(refusal([](RunRecord& r) { r.kept_offsets.clear(); }), Contains("kept_offsets"));
    CHECK_THAT(refusal([](RunRecord& r) { r.attention_kept.push_back(0); }), Contains("attention_kept"));
    CHECK_THAT(refusal([](RunRecord& r) { r.granularity = "query_head"; }), Contains("kept_offsets"));
    CHECK(refusal([](RunRecord& r) { r.scores.clear(); }).empty());
}

TEST_CASE("runs are added while other threads read", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    const Reader reader(folder / "t.h5");
    const RunRecord run = reader.run_record(0, 2);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int& count : wrong) {
        threads.emplace_back([&] {
            for (int repeat = 0; repeat < 20; ++repeat) {
                const Reader extended = reader.with_run(0, run);
                if (extended.kept(0, 7)->indices != reader.kept(0, 2)->indices) ++count;
                if (extended.window_attention(0, 1).size() != 4U * 48U) ++count;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

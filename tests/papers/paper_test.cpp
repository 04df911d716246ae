#include "app/papers/paper.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "app/papers/item_figure.h"
#include "common/whole_file.h"
#include "policies/registry/registry.h"
#include "tests/temporary_folder.h"

namespace kvscope::papers {
namespace {

Paper read(const std::string& text) {
    const TemporaryFolder folder;
    const auto file = folder.path() / "paper.yaml";
    write_whole_file(file, text, true);
    return read_paper(file);
}

const std::string head =
    "paper: X\ntitle: T\ntraces:\n  a: {command: run, texts: 3, options: {policy: [snapkv, h2o], budget: 64}, "
    "fast: {texts: 2, budget: 32}}\nitems:\n";

TEST_CASE("A paper's file has traces, items and findings") {
    const Paper paper = read(head + R"(
  - {id: F1, shows: s, trace: a, figure: coverage, options: {run: [snapkv, h2o], layer: "0,3-5"}, rename: {snapkv: SnapKV},
     findings: [{says: one, paper: "1 > 2", number: kl, of: snapkv, than: h2o, sign: less, budget: [64, 128]}]}
  - {id: T1, shows: s, cannot: because}
)");
    REQUIRE(paper.items.size() == 2);
    const PaperItem& item = paper.items.front();
    CHECK(item.full_id() == "X:F1");
    CHECK(item.state() == "yes");
    CHECK(item.renames == std::vector<std::string>{"snapkv=SnapKV"});
    CHECK(figure_options(item).layers == std::vector{0, 3, 4, 5});
    CHECK(figure_options(item).runs.size() == 2);
    CHECK(item.findings.front().trace == "a");
    CHECK(item.findings.front().budgets == std::vector<std::string>{"64", "128"});
    CHECK(paper.items.back().state() == "no");
    CHECK(paper.traces.front().n_fast_texts == 2);
    const OptionTexts fast = with_replaced(paper.traces.front().options, paper.traces.front().fast);
    CHECK(fast == OptionTexts{{"policy", {"snapkv", "h2o"}}, {"budget", {"32"}}});
}

TEST_CASE("Errors in a paper's file name the line and the remedy") {
    const auto fails = [](const std::string& items, const std::string& message) {
        CHECK_THROWS_WITH(read(head + items), Catch::Contains("paper.yaml:6") && Catch::Contains(message));
    };
    fails("  - {id: F1, shows: s, trace: b, figure: coverage}\n", "no trace 'b'. Did you mean a?");
    fails("  - {id: F1, shows: s, trace: a, figure: coverag}\n", "coverag");
    fails("  - {id: F1, shows: s, trace: a, figur: coverage}\n", "unknown key 'figur'. Did you mean figure?");
    fails("  - {id: F1, shows: s, cannot: c, rename: {random: []}}\n", "expected a value, found an empty list");
    fails("  - {id: ../F1, shows: s, cannot: c}\n", "'../F1' becomes the name of a file");
    fails("  - {id: F1, shows: s, trace: a, figure: coverage, ranking: heads}\n", "F1 has a figure and a ranking");
    fails("  - {id: F1, shows: s}\n", "needs one of figure, ranking, command and cannot, found 0");
    fails(
        "  - {id: F1, shows: s, cannot: c, findings: [{says: x, paper: y, number: kll, of: a, than: b, sign: less}]}\n",
        "kll");
    fails("  - {id: F1, shows: s, cannot: c, findings: [{says: x, paper: y, number: kl, of: a, than: b, sign: up}]}\n",
          "expected sign: more, less, found 'up'");
    CHECK_THROWS_WITH(read("paper: [\n"), Catch::Contains("paper.yaml"));
    CHECK_THROWS_WITH(read(head + "  - {id: F1, shows: s, cannot: c}\n  - {id: F1, shows: s, cannot: c}\n"),
                      Catch::Contains("the item F1 exists twice"));
}

TEST_CASE("The items of the five papers can be drawn with their options") {
    std::set<std::string> names;
    for (const Paper& paper : all_papers()) {
        names.insert(paper.name);
        CHECK(paper.items.size() >= 10);
        for (const PaperItem& item : paper.items) {
            INFO(item.full_id());
            CHECK(&item_named(item.full_id()) == &item);
            if (!item.figure.empty()) CHECK_NOTHROW(figure_options(item));
        }
    }
    CHECK(names == std::set<std::string>{"ApertureKV", "DapQ", "EchoKV", "K-VEC", "KVSlimmer"});
    CHECK_THROWS_WITH(item_named("K-VEC:F99"), Catch::Contains("there is no item of K-VEC 'F99'"));
    CHECK_THROWS_WITH(item_named("K-VEC:T10"), Catch::Contains("K-VEC:T10 has several parts: name one of T10a, T10b"));
    CHECK_THROWS_WITH(item_named("KVEC:F1"), Catch::Contains("Did you mean K-VEC?"));
}

TEST_CASE("With one window for all policies, findings name the runs that this makes") {
    const Paper paper = read(head + R"(
  - {id: F1, shows: s, trace: a, figure: coverage, options: {run: [snapkv, h2o]},
     findings: [{says: x, paper: y, number: kl, of: snapkv @ 64, than: "aperturekv:window=4", sign: less}]}
)");
    const PaperItem item = with_same_window(paper.items.front(), 16);
    CHECK(item.options.front().second == std::vector<std::string>{"snapkv:window=16", "h2o"});
    CHECK(item.findings.front().of == "snapkv:window=16 @ 64");
    CHECK(item.findings.front().than == "aperturekv:window=4");
}

TEST_CASE("The findings of the papers name runs of their traces") {
    for (const Paper& paper : all_papers())
        for (const PaperItem& item : paper.items)
            for (const Finding& finding : item.findings) {
                if (!finding.cannot.empty()) continue;
                INFO(item.full_id() << ": " << finding.says);
                std::set<std::string> runs = {"full"};
                for (const auto& [name, values] : paper.trace(finding.trace).options)
                    if (name == "policy")
                        for (const std::string& list : values)
                            for (const std::string& text : policies::split_policies(list)) {
                                if (text.find('{') != std::string::npos) {  // a file that is made first
                                    runs.insert({text, text.substr(0, text.find(':'))});
                                    continue;
                                }
                                for (const auto& spec : policies::parse_policies(text)) runs.insert(spec.label());
                            }
                for (const std::string& name : {finding.of, finding.than}) {
                    const std::string setting = name.substr(0, name.find(" @ "));
                    const bool is_known = setting == "full" || runs.contains(setting) ||
                                          runs.contains(policies::parse_policy(setting).label());
                    CHECK(is_known);
                }
            }
}

}  // namespace
}  // namespace kvscope::papers

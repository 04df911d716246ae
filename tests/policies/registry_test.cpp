#include "policies/registry/registry.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "policies/registry/describe.h"
#include "policies/registry/name_matching.h"

using namespace kvscope::policies;
using Catch::Matchers::Contains;

namespace {

const std::filesystem::path source = std::filesystem::path(KVSCOPE_TEST_DATA) / ".." / "..";

}  // namespace

TEST_CASE("every file in policies/ is registered under its own name", "[registry]") {
    std::set<std::string> files, names;
    for (const auto& entry : std::filesystem::directory_iterator(source / "policies")) {
        if (entry.path().extension() == ".cpp") files.insert(entry.path().stem().string());
    }
    for (const Definition& definition : definitions()) {
        std::string file = definition.name;
        std::replace(file.begin(), file.end(), '-', '_');
        for (size_t at = file.find('+'); at != std::string::npos; at = file.find('+')) file.replace(at, 1, "_plus");
        names.insert(file);
    }
    CHECK(files == names);
    CHECK(files.size() == definitions().size());
}

TEST_CASE("declarations are complete", "[registry]") {
    for (const Definition& definition : definitions()) {
        CAPTURE(definition.name);
        CHECK_FALSE(definition.title.empty());
        CHECK(definition.summary.ends_with('.'));
        CHECK((definition.paper.empty() || definition.paper.find(", ") != std::string::npos));  // authors, title
        CHECK(find_definition(definition.name) == &definition);
        std::set<std::string> seen;
        for (const Parameter& parameter : definition.parameters) {
            CAPTURE(parameter.name);
            CHECK(seen.insert(parameter.name).second);
            CHECK(parameter.help.ends_with('.'));
            CHECK(parameter.help.find('\n') == std::string::npos);
        }
        // The form looks for the user's file in the first text parameter.
        const auto text = std::find_if(definition.parameters.begin(), definition.parameters.end(),
                                       [](const Parameter& one) { return one.kind == ParameterKind::text; });
        if (definition.needs_file) {
            REQUIRE(text != definition.parameters.end());
            CHECK(std::get<std::string>(text->fallback).empty());
        }
        REQUIRE(definition.create != nullptr);
        CHECK(static_cast<bool>(definition.create(ParameterValues(definition.parameters))));
    }
}

TEST_CASE("a policy is read as written on the command line", "[registry]") {
    const PolicySpec spec = parse_policy("Ada_SnapKV: window=8 , lambda=0.45,normalize");
    CHECK(spec.definition->name == "ada-snapkv");
    CHECK(spec.values.integer("window") == 8);
    CHECK(spec.values.boolean("normalize"));
    CHECK(spec.label() == "ada-snapkv:window=8,lambda=0.45,normalize=on");
    CHECK(parse_policy(spec.label()) == spec);
    CHECK(parse_policy("snapkv").label() == "snapkv");
    CHECK(parse_policy("snapkv:").label() == "snapkv");
    CHECK(parse_policy("snapkv:window=32").label() == "snapkv");
    CHECK_FALSE(parse_policy("snapkv") == parse_policy("snapkv:window=8"));
}

TEST_CASE("ranges of parameters give every combination", "[registry]") {
    const auto labels = [](std::string_view text) {
        std::vector<std::string> found;
        for (const PolicySpec& spec : parse_policies(text)) found.push_back(spec.label());
        return found;
    };
    using Labels = std::vector<std::string>;
    CHECK(labels("snapkv:window=8-64*2") ==
          Labels{"snapkv:window=8", "snapkv:window=16", "snapkv", "snapkv:window=64"});  // 32 is the default
    CHECK(labels("snapkv:window=8-12*1.5") == Labels{"snapkv:window=8", "snapkv:window=12"});
    CHECK(labels("SnapKV: window = 3-5, kernel=3") ==
          Labels{"snapkv:window=3,kernel=3", "snapkv:window=4,kernel=3", "snapkv:window=5,kernel=3"});
    CHECK(labels("aperturekv:lambda=0.1-0.3+0.1,window=4-16*4") ==
          Labels{"aperturekv:window=4,lambda=0.1", "aperturekv:window=16,lambda=0.1", "aperturekv:window=4,lambda=0.2",
                 "aperturekv:window=16,lambda=0.2", "aperturekv:window=4,lambda=0.3",
                 "aperturekv:window=16,lambda=0.3"});
    CHECK(labels("aperturekv:lambda=1e-13-1e-11*10") ==
          Labels{"aperturekv:lambda=1e-13", "aperturekv:lambda=1e-12", "aperturekv:lambda=1e-11"});
    CHECK(labels("aperturekv:lambda=1e-3") == Labels{"aperturekv:lambda=0.001"});
    CHECK(labels("h2o") == Labels{"h2o"});
    const auto refuses = [](std::string_view text, const std::string& reason) {
        CAPTURE(text);
        CHECK_THROWS_WITH(parse_policies(text), Contains(reason));
        CHECK_THROWS_AS(parse_policies(text), ParameterError);
    };
    refuses("snapkv:window=64-8*2", "window=64-8*2: the range runs backwards");
    refuses("snapkv:window=8-64*1", "the factor must be above 1");
    refuses("snapkv:window=8-64+0", "the step must be above 0");
    refuses("snapkv:window=8-", "A range has the form 8-64*2");
    refuses("snapkv:window=8-x", "A range has the form 8-64*2");
    refuses("snapkv:window=8-100", "needs a step (16-64+16)");
    refuses("snapkv:window=8.5-9", "must be whole numbers");
    refuses("snapkv:window=0-2", "expected a whole number, at least 1");
    refuses("aperturekv:lambda=0.1-0.3", "needs a step");
    refuses("aperturekv:lambda=0-0.3*2", "must begin above 0");
    refuses("aperturekv:lambda=0-nan+1", "finite");
    refuses("aperturekv:lambda=nan-0.2+0.1", "finite");
    refuses("snapkv:window=1-2000+1", "more than 1000 values");
    refuses("aperturekv:window=1-40,lambda=0.01-0.4+0.01", "more than 1000 combinations");
    CHECK_THROWS_AS(parse_policy("snapkv:window=8-64*2"), ParameterError);  // expects one policy
}

TEST_CASE("unknown names are refused with the existing ones", "[registry]") {
    CHECK_THROWS_WITH(parse_policy("snapk"), Contains("Did you mean snapkv") && Contains("aperturekv, ") &&
                                                 Contains(", full, ") && Contains(", h2o, "));
    CHECK_THROWS_WITH(parse_policy("aperture"), Contains("Did you mean aperturekv?"));
    CHECK_THROWS_WITH(parse_policy("xyz"), Contains("unknown policy 'xyz'") && !Contains("Did you mean"));
    CHECK_THROWS_WITH(parse_policy(""), Contains("unknown policy"));
    CHECK_THROWS_WITH(parse_policy("snapkv:windw=8"), Contains("snapkv") && Contains("Did you mean window"));
    CHECK_THROWS_WITH(parse_policy("full:window=8"), Contains("This policy has no parameters"));
    CHECK_THROWS_WITH(parse_policy("snapkv:window"), Contains("parameter=value") && !Contains("range"));
    CHECK_THROWS_WITH(parse_policy("snapkv:window=8,16"), Contains("repeat --policy, or give a range"));
    CHECK_THROWS_WITH(parse_policy("snapkv:window=8,,kernel=3"), Contains("between the commas"));
    CHECK_THROWS_WITH(parse_policy("pyramidkv:beta=0.5"), Contains("at least 1"));
    CHECK_THROWS_AS(parse_policy("snapkv:=8"), std::invalid_argument);
}

TEST_CASE("a run's label has its policy and its budget, shares in percent", "[registry]") {
    const PolicySpec snapkv = parse_policy("snapkv:window=8");
    CHECK(run_label(snapkv, parse_budget("128")) == "snapkv:window=8 @ 128");
    CHECK(run_label(snapkv, parse_budget("0.5")) == "snapkv:window=8 @ 50 %");
    CHECK(run_label(snapkv, {.is_share = true, .share = 1.0 / 6}) == "snapkv:window=8 @ 16.67 %");
    CHECK(run_label(snapkv, parse_budget("1.0")) == "snapkv:window=8 @ 100 %");
    CHECK(run_label(snapkv, parse_budget("0.00125")) == "snapkv:window=8 @ 0.125 %");
    CHECK(run_label(parse_policy("full"), parse_budget("100%")) == "full");
}

TEST_CASE("a share in a run's label may be written in other ways", "[registry]") {
    CHECK(same_run_label("snapkv:window=8 @ 16.67 %", "snapkv:window=8 @ 0.1667"));
    for (const char* label : {"snapkv @ 64", "full", "snapkv @ ", "snapkv @ 20 % (what-if)"})
        CHECK_FALSE(same_run_label(label, "snapkv @ 20 %"));
    CHECK(same_run_label("think @ 75 %", "think @ 0.75"));
    CHECK(same_run_label("think @ 0.75", "think @ 75%"));
    CHECK(same_run_label("think @ 75 %", "think@75%"));
    CHECK(same_run_label("snapkv:window=8 @ 128", "snapkv:window=8@128"));
    CHECK_FALSE(same_run_label("snapkv @ 128", "snapkv@12"));
    CHECK_FALSE(same_run_label("@", "@ "));
    CHECK(same_run_label("think @ 16.67 %", "think @ 0.16666666666666666"));
    CHECK(same_run_label("snapkv @ 64 (what-if)", "snapkv @ 64 (what-if)"));
    CHECK_FALSE(same_run_label("think @ 75 %", "think @ 0.7"));
    CHECK_FALSE(same_run_label("think @ 75 %", "palu @ 0.75"));
    CHECK_FALSE(same_run_label("think @ 75 %", "think @ 75"));
    CHECK_FALSE(same_run_label("think @ 75 %", "think @ 75 % (what-if)"));
    CHECK_FALSE(same_run_label("think @ 75 %", "think"));
    CHECK_FALSE(same_run_label("think @", "think @ "));
}

TEST_CASE("any text is read as a policy or refused with a ParameterError", "[registry]") {
    std::mt19937 random(13);
    const std::vector<std::string> pieces{"snapkv", "h2o", "aperturekv", ":",  "=",    ",",  "window",  "lambda",
                                          "0.1",    "-1",  "\xff\xfe",   "",   "auto", "on", " ",       "recent",
                                          "1e999",  "_",   "-",          "\n", "{}",   "%s", "sharpen", "none"};
    int read = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string text = round % 2 ? "snapkv:" : "";
        for (size_t i = random() % 8; i > 0; --i) text += pieces[random() % pieces.size()];
        try {
            const PolicySpec spec = parse_policy(text);
            REQUIRE(parse_policy(spec.label()) == spec);
            ++read;
        } catch (const ParameterError& error) {
            REQUIRE_FALSE(std::string(error.what()).empty());
        }
    }
    CHECK(read > 0);
}

TEST_CASE("docs/policies.md equals the declarations", "[registry]") {
    const std::filesystem::path page = source / "docs" / "policies.md";
    const std::string made = policies_markdown(definitions());
    if (std::getenv("KVSCOPE_UPDATE_DOCS")) std::ofstream(page, std::ios::binary) << made;
    std::ostringstream found;
    found << std::ifstream(page, std::ios::binary).rdbuf();
    INFO("`KVSCOPE_UPDATE_DOCS=1 build/release/bin/kvscope_policies_tests` rewrites the page");
    CHECK((found.str() == made));
}

TEST_CASE("a list of policies is split before the names of policies", "[registry]") {
    using Texts = std::vector<std::string>;
    CHECK(split_policies("snapkv") == Texts{"snapkv"});
    CHECK(split_policies("snapkv,h2o, k_vec") == Texts{"snapkv", "h2o", "k_vec"});
    CHECK(split_policies("snapkv:window=8,kernel=7,h2o,aperturekv:lambda=0,window=8") ==
          Texts{"snapkv:window=8,kernel=7", "h2o", "aperturekv:lambda=0,window=8"});
    CHECK(split_policies("kvslimmer:final_merge=off,decode_merge,full") ==
          Texts{"kvslimmer:final_merge=off,decode_merge", "full"});
    CHECK(split_policies("snap,h2o") == Texts{"snap", "h2o"});  // the unknown name is refused alone
    CHECK(split_policies("headkv:importance=a,b.json") == Texts{"headkv:importance=a,b.json"});
    for (const Definition& definition : definitions())
        // Otherwise a parameter could not stand alone.
        for (const Parameter& parameter : definition.parameters) CHECK(find_definition(parameter.name) == nullptr);
}

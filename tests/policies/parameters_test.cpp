#include "policies/api/parameters.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "policies/registry/name_matching.h"

using namespace kvscope::policies;
using Catch::Matchers::Contains;

namespace {

std::vector<Parameter> some() {
    return {
        integer_parameter("window", 32, {.low = 1}, "w"),
        integer_parameter("kernel", 7, {.low = 1, .odd = true}, "k"),
        automatic_integer_parameter("recent", "half of the budget", {.low = 0}, "r"),
        real_parameter("lambda", 0.45, {.low = 0.0, .high = 0.5}, "l"),
        real_parameter("tau", 1.0, {.low = 0.0, .low_open = true}, "t"),
        choice_parameter("divergence", {"jsd", "kl", "cross-entropy"}, "jsd", "d"),
        boolean_parameter("extended_window", false, "e"),
        text_parameter("file", "", "f"),
    };
}

}  // namespace

TEST_CASE("values have their defaults, and each type is read", "[parameters]") {
    ParameterValues values(some());
    CHECK(values.integer("window") == 32);
    CHECK_FALSE(values.automatic_integer("recent").has_value());
    CHECK(values.text_of_changes().empty());
    values.set("window", "8");
    values.set("LAMBDA", "0");
    values.set("recent", "16");
    values.set("divergence", "Cross_Entropy");
    values.set("extended-window", "yes");
    values.set("file", "a b");
    CHECK(values.integer("window") == 8);
    CHECK(values.real("lambda") == 0.0);
    CHECK(values.automatic_integer("recent") == 16);
    CHECK(values.text("divergence") == "cross-entropy");
    CHECK(values.boolean("extended_window"));
    CHECK(values.text_of_changes() ==
          "window=8,recent=16,lambda=0,divergence=cross-entropy,extended_window=on,file=a b");
    values.set("recent", "AUTO");
    CHECK_FALSE(values.automatic_integer("recent").has_value());
    CHECK(values.is_default("recent"));
    CHECK_THROWS_AS(values.integer("lambda"), std::logic_error);
}

TEST_CASE("an invalid value is refused with the allowed ones", "[parameters]") {
    ParameterValues values(some());
    for (const char* text : {"0", "-3", "x", "", "1.5", "8 ", "9999999999999999999", "auto"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(values.set("window", text), ParameterError);
    }
    CHECK_THROWS_WITH(values.set("window", "0"), Contains("window=0") && Contains("at least 1"));
    CHECK_THROWS_WITH(values.set("kernel", "4"), Contains("odd"));
    for (const char* text : {"0.51", "-0.1", "nan", "inf", "1e400", "0,4", ""}) {
        CAPTURE(text);
        CHECK_THROWS_WITH(values.set("lambda", text), Contains("in [0, 0.5]"));
    }
    CHECK_THROWS_WITH(values.set("tau", "0"), Contains("above 0"));
    CHECK_THROWS_WITH(values.set("divergence", "jds"),
                      Contains("jsd, kl, cross-entropy") && Contains("Did you mean jsd?"));
    CHECK_THROWS_WITH(values.set("extended_window", "maybe"), Contains("on or off"));
    CHECK_THROWS_WITH(values.set("recent", "-1"), Contains("at least 0") && Contains("half of the budget"));
    CHECK_THROWS_WITH(values.set("windw", "8"), Contains("Did you mean window") && Contains("tau, divergence"));
    CHECK(values == ParameterValues(some()));
}

TEST_CASE("the numbers of a list may be ranges", "[parameters]") {
    const Parameter lengths = integers_parameter("lengths", "1", {.low = 1}, "");
    CHECK(to_text(lengths.parse("500,1000-4000*2,9-11")) == "500,1000,2000,4000,9,10,11");
    const Parameter depths = reals_parameter("depths", "0", {.low = 0, .high = 1}, "");
    CHECK(to_text(depths.parse("0-1+0.25")) == "0,0.25,0.5,0.75,1");
    CHECK_THROWS_WITH(depths.parse("0-2+0.5"), Contains("in [0, 1]"));
    CHECK_THROWS_WITH(lengths.parse("1,9-7"), Contains("9-7: the range runs backwards"));
    CHECK_THROWS_AS(lengths.parse("1,,2"), ParameterError);
    CHECK_THROWS_AS(lengths.parse(""), ParameterError);
}

TEST_CASE("integers beyond the limit are refused", "[parameters]") {
    const Parameter window = integer_parameter("window", 32, {.low = 1}, "its help");
    CHECK(std::get<int64_t>(window.parse("1000000000")) == 1'000'000'000);
    for (const char* text : {"1000000001", "2147483648", "4294967297", "9223372036854775807"})
        CHECK_THROWS_WITH(window.parse(text), Catch::Matchers::Contains("The maximum is 1,000,000,000"));
    const Parameter least = integer_parameter("offset", 0, {}, "its help");
    CHECK_THROWS_AS(least.parse("-4294967297"), ParameterError);
}

TEST_CASE("JSON contains every parameter and reads back", "[parameters]") {
    ParameterValues values(some());
    values.set("lambda", "0.1");
    values.set("file", "a\"b\n\xc3\xa9");
    CHECK(values.to_json() ==
          "{\"window\":32,\"kernel\":7,\"recent\":\"auto\",\"lambda\":0.1,\"tau\":1.0,\"divergence\":\"jsd\","
          "\"extended_window\":false,\"file\":\"a\\\"b\\n\xc3\xa9\"}");
    CHECK(ParameterValues::from_json(some(), values.to_json()) == values);
    CHECK(ParameterValues::from_json(some(), "{\"tau\":2}").real("tau") == 2.0);
    for (const char* json : {"", "[]", "{", "{\"tau\":null}", "{\"window\":1.5}", "{\"windw\":1}", "{\"tau\":\"1\"}"}) {
        CAPTURE(json);
        CHECK_THROWS_AS(ParameterValues::from_json(some(), json), ParameterError);
    }
}

TEST_CASE("a default outside its own range is an error in the declaration", "[parameters]") {
    CHECK_THROWS_AS(ParameterValues({integer_parameter("a", 0, {.low = 1}, "")}), ParameterError);
    CHECK_THROWS_AS(ParameterValues({choice_parameter("a", {"b"}, "c", "")}), ParameterError);
}

TEST_CASE("similar names are suggested", "[names]") {
    CHECK(same_name("Ada_SnapKV", "ada-snapkv"));
    CHECK(name_distance("snapkv", "snakpv") == 1);
    CHECK(name_distance("", "abc") == 3);
    const std::vector<std::string> names{"ada-snapkv", "snapkv", "pyramidkv", "h2o", "full"};
    CHECK(nearest_names("snapk", names) == std::vector<std::string>{"snapkv", "ada-snapkv"});
    CHECK(nearest_names("pyramid", names) == std::vector<std::string>{"pyramidkv"});
    CHECK(nearest_names("h20", names) == std::vector<std::string>{"h2o"});
    CHECK(nearest_names("transformer", names).empty());
    CHECK(nearest_names("", names).empty());
    CHECK(nearest_names(std::string(100000, 'x'), names).empty());
    CHECK(did_you_mean("snapk", names) == " Did you mean snapkv or ada-snapkv?");
}

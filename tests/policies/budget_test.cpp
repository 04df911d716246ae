#include "policies/api/budget.h"

#include <catch2/catch.hpp>

using namespace kvscope::policies;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> texts(std::string_view list) {
    std::vector<std::string> all;
    for (const Budget& budget : parse_budgets(list)) all.push_back(budget.text());
    return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("counts have no decimal point; shares have one or a percent sign", "[budget]") {
    CHECK(parse_budget("128").resolve(1000) == 128);
    CHECK(parse_budget("1").resolve(1000) == 1);
    CHECK(parse_budget("0.2").resolve(1000) == 200);
    CHECK(parse_budget("20%").resolve(1000) == 200);
    CHECK(parse_budget(".5").resolve(5) == 3);  // halves up
    CHECK(parse_budget("0.30").resolve(5) == 2);
    CHECK(parse_budget("1.0").resolve(77) == 77);
    CHECK(parse_budget("100%").resolve(77) == 77);
    CHECK(parse_budget("12.5 %").resolve(80) == 10);
    CHECK(parse_budget("20%") == parse_budget("0.2"));
    CHECK(parse_budget("1.0").text() == "1.0");
    CHECK(parse_budget(parse_budget("7%").text()) == parse_budget("0.07"));
    CHECK(parse_budget("5000").resolve(1000) == 5000);
}

TEST_CASE("budgets as lists and ranges", "[budget]") {
    CHECK(texts("64,128") == Texts{"64", "128"});
    CHECK(texts("64-512*2") == Texts{"64", "128", "256", "512"});
    CHECK(texts("64-500*2") == Texts{"64", "128", "256"});
    CHECK(texts("64-256+64") == Texts{"64", "128", "192", "256"});
    CHECK(texts("3-5") == Texts{"3", "4", "5"});
    CHECK(texts("0.1-0.5+0.1") == Texts{"0.1", "0.2", "0.3", "0.4", "0.5"});
    CHECK(texts("10%-30%+10%") == Texts{"0.1", "0.2", "0.3"});
    CHECK(texts("0.125-1.0*2") == Texts{"0.125", "0.25", "0.5", "1.0"});
    CHECK(texts(" 64 , 0.5,64") == Texts{"64", "0.5"});
    CHECK(texts("4-4") == Texts{"4"});
}

TEST_CASE("invalid budgets are refused with the reason", "[budget]") {
    for (const char* text : {"",
                             " ",
                             "0",
                             "-5",
                             "0.0",
                             "0%",
                             "-0.2",
                             "-20%",
                             "1.5",
                             "101%",
                             "abc",
                             "12x",
                             "1e-400",
                             "nan",
                             "inf",
                             "%",
                             "--",
                             "0x10",
                             "99999999999999999999",
                             "1,2"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_budget(text), BudgetError);
    }
    for (const char* text :
         {"64,", ",", "64,,128", "512-64", "64-512*1", "64-512*0.5", "64-512*x", "64-512+0", "64-0.5", "0.1-0.5",
          "0.1-0.5+1", "1-1000000", "64-512", "64-", "-64-128", "64-512*inf", "5--3"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_budgets(text), BudgetError);
    }
    CHECK_THROWS_WITH(parse_budget("0"), Contains("at least 1"));
    CHECK_THROWS_WITH(parse_budget("1.5"), Contains("at most 1"));
    CHECK_THROWS_WITH(parse_budget("99999999999999999999"), Contains("no prompt is that long"));
    CHECK_THROWS_WITH(parse_budget("99999999999999999999x"), Contains("it is not a number"));
    CHECK_THROWS_WITH(parse_budgets("512-64"), Contains("backwards"));
    CHECK_THROWS_WITH(parse_budgets("64-512"), Contains("needs a step (64-512+64)"));
    CHECK(parse_budgets("64-127").size() == 64);
    CHECK(parse_budgets("64-512+1").size() == 449);
    CHECK_THROWS_AS(parse_budget("0"), std::invalid_argument);
    CHECK_THROWS_WITH(parse_budget("0.001").resolve(100), Contains("less than one entry"));
    CHECK(parse_budget("0.3").resolve(1, BudgetOf::bytes) == 1);
    CHECK(parse_budget("0.3").describe(1, BudgetOf::bytes) ==
          "every token kept, 30.0 % of the full cache's bytes requested (70.0 % saved)");
    CHECK(parse_budget("0.85").describe(390, BudgetOf::bytes, 1.685) ==
          "every token kept, 85.0 % of the full cache's bytes requested, 168.5 % including extra data (68.5 % "
          "more than the full cache)");
    CHECK(parse_budget("0.5").describe(390, BudgetOf::bytes, 0.669) ==
          "every token kept, 50.0 % of the full cache's bytes requested, 66.9 % including extra data (33.1 % "
          "saved)");
}

TEST_CASE("descriptions name both kept and removed entries", "[budget]") {
    CHECK(parse_budget("128").describe(2000) == "128 of 2000 entries kept (6.4 %), 1872 removed (93.6 %)");
    CHECK(parse_budget("25%").describe(10) == "3 of 10 entries kept (30.0 %), 7 removed (70.0 %)");
    CHECK(parse_budget("14433").describe(20000, BudgetOf::entries, {}, [](int64_t n) {
        return "<" + std::to_string(n) + ">";
    }) == "<14433> of <20000> entries kept (72.2 %), <5567> removed (27.8 %)");
    CHECK(parse_budget("64").describe(10) == "10 of 10 entries kept (100.0 %), 0 removed (0.0 %)");
}

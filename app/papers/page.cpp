#include "app/papers/page.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/results/scalars.h"
#include "analysis/tables/html.h"
#include "analysis/tables/table_format.h"

namespace kvscope::papers {
namespace {

using analysis::html_text;

std::string number_text(const analysis::Scalar& scalar, double value) {
    return analysis::format_real(value, scalar.decimals) + (scalar.unit.empty() ? "" : fmt::format(" {}", scalar.unit));
}

/// Returns "0.252 against 0.362 nats".
std::string our_means(const Finding& finding, const Judgement& judgement) {
    if (!judgement.of || !judgement.than) return "";
    const analysis::Scalar& scalar = analysis::scalar_named(finding.number);
    return fmt::format("{} against {}", analysis::format_real(*judgement.of, scalar.decimals),
                       number_text(scalar, *judgement.than));
}

/// Returns "−0.110 [−0.150, −0.070], 20 prompts".
std::string our_difference(const Finding& finding, const Judgement& judgement) {
    if (!judgement.difference) return "";
    const analysis::Scalar& scalar = analysis::scalar_named(finding.number);
    const auto& [low, high] = judgement.difference->interval;
    std::string text = analysis::format_real(judgement.difference->mean, scalar.decimals);
    if (!std::isnan(low))
        text += fmt::format(" [{}, {}]", analysis::format_real(low, scalar.decimals),
                            analysis::format_real(high, scalar.decimals));
    return text + fmt::format(", {} prompts", judgement.difference->n_clusters);
}

std::string compared(const Finding& finding, const Judgement& judgement) {
    if (finding.number.empty()) return "";
    std::string text =
        fmt::format("{}: {} − {}", analysis::scalar_named(finding.number).title, finding.of, finding.than);
    if (!judgement.budget.empty()) text += " @ " + judgement.budget;
    for (const auto& [name, value] : finding.where) text += fmt::format(", {} {}", name, value);
    return text;
}

std::string outcome_text(const Judgement& judgement) {
    std::string text(in_words(judgement.outcome));
    if (!judgement.reason.empty()) text += ": " + judgement.reason;
    return text;
}

std::string html_of_findings(const ReproducedItem& item) {
    if (item.findings.empty()) return "";
    std::string rows;
    for (const auto& [finding, judgements] : item.findings) {
        bool is_first = true;
        for (const Judgement& judgement : judgements) {
            const char* color = judgement.outcome == Judgement::Outcome::holds           ? "holds"
                                : judgement.outcome == Judgement::Outcome::does_not_hold ? "fails"
                                                                                         : "unknown";
            rows += "<tr>";
            for (const std::string& text :
                 {is_first ? finding->says : "", is_first ? finding->paper : "", compared(*finding, judgement),
                  our_means(*finding, judgement), our_difference(*finding, judgement)})
                rows += fmt::format("<td>{}</td>", html_text(text));
            rows += fmt::format("<td class=\"{}\">{}</td></tr>\n", color, html_text(outcome_text(judgement)));
            is_first = false;
        }
    }
    return fmt::format(
        "<table><thead><tr><th>Statement</th><th>Paper</th><th>Compared</th><th>Here</th><th>Difference, 95 % interval"
        "</th><th>Outcome</th></tr></thead>\n<tbody>{}</tbody></table>\n",
        rows);
}

std::string html_of_item(const ReproducedItem& made) {
    const PaperItem& item = *made.item;
    std::string html =
        fmt::format("<h2 id=\"{}\">{}: {}</h2>\n", html_text(item.id), html_text(item.id), html_text(item.shows));
    if (!made.nothing.empty()) html += fmt::format("<p class=\"unknown\">Not made: {}</p>\n", html_text(made.nothing));
    html += made.pictures;
    if (!item.lacks.empty()) html += fmt::format("<p>Differs from the paper: {}</p>\n", html_text(item.lacks));
    html += html_of_findings(made);
    if (!made.numbers.empty()) html += "<details><summary>Numbers</summary>\n" + made.numbers + "</details>\n";
    if (!made.command.empty()) html += fmt::format("<pre>{}</pre>\n", html_text(made.command));
    if (!made.files.empty()) {
        html += "<p>Files:";
        for (const std::string& file : made.files) html += fmt::format(" <a href=\"{0}\">{0}</a>", html_text(file));
        html += "</p>\n";
    }
    return html;
}

std::string html_of_overview(const Reproduction& reproduction) {
    std::string rows;
    for (const ReproducedItem& made : reproduction.items)
        rows += fmt::format("<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td></tr>\n",
                            html_text(made.item->id), html_text(made.item->shows),
                            made.nothing.empty() ? "made" : "not made", html_text(in_words(count(made.findings))));
    return fmt::format(
        "<table><thead><tr><th>Item</th><th>Shows</th><th>State</th><th>Statements</th></tr></thead>\n"
        "<tbody>{}</tbody></table>\n",
        rows);
}

}  // namespace

Counts count(const std::vector<JudgedFinding>& findings) {
    Counts counts;
    for (const auto& [finding, judgements] : findings)
        for (const Judgement& judgement : judgements)
            ++(judgement.outcome == Judgement::Outcome::holds           ? counts.n_hold
               : judgement.outcome == Judgement::Outcome::does_not_hold ? counts.n_do_not_hold
                                                                        : counts.n_unknown);
    return counts;
}

std::string in_words(const Counts& counts) {
    std::string text;
    const auto add = [&](int n, const char* one, const char* several) {
        if (n > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, n == 1 ? one : several);
    };
    add(counts.n_hold, "holds", "hold");
    add(counts.n_do_not_hold, "does not hold", "do not hold");
    add(counts.n_unknown, "cannot be judged", "cannot be judged");
    return text;
}

std::string page_of(const Reproduction& reproduction) {
    const Paper& paper = *reproduction.paper;
    std::vector<JudgedFinding> all;
    for (const ReproducedItem& made : reproduction.items)
        all.insert(all.end(), made.findings.begin(), made.findings.end());
    std::string body =
        "<style>.holds { color: #00703c; } .fails { color: #b3261e; } .unknown { color: #666; }\n"
        "body { max-width: 90em; } td { vertical-align: top; } .says { min-width: 16em; }\n"
        "pre { overflow-x: auto; background: #f4f4f4; padding: 0.6em; }</style>\n";
    body += fmt::format("<h1>{}</h1>\n", html_text(paper.heading()));
    body += "<table><tbody>\n";
    for (const auto& [name, value] : reproduction.conditions)
        body += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(name), html_text(value));
    body += "</tbody></table>\n";
    body += fmt::format(
        "<p>A statement holds if the paired difference has the sign that the paper reports and its 95 % interval "
        "excludes 0. With fewer than {} prompts it is not judged. Of all comparisons, {}.</p>\n",
        fewest_contexts, html_text(all.empty() ? "there are none" : in_words(count(all))));
    body += html_of_overview(reproduction);
    for (const ReproducedItem& made : reproduction.items) body += html_of_item(made);
    body += "<h2>Commands</h2>\n";
    for (const std::string& command : reproduction.commands_of_traces)
        body += fmt::format("<pre>{}</pre>\n", html_text(command));
    body += fmt::format("<p>This command repeats everything:</p>\n<pre>{}</pre>\n", html_text(reproduction.command));
    return analysis::html_page(fmt::format("{} with kvscope", paper.name), body);
}

analysis::Table table_of_findings(const Reproduction& reproduction) {
    analysis::Table table{"findings",
                          "Findings",
                          {{"item", "Item", ""},
                           {"statement", "Statement", ""},
                           {"paper", "Paper", ""},
                           {"compared", "Compared", ""},
                           {"here", "Here", ""},
                           {"difference", "Difference", ""},
                           {"outcome", "Outcome", ""}},
                          {}};
    for (const ReproducedItem& made : reproduction.items)
        for (const auto& [finding, judgements] : made.findings)
            for (const Judgement& judgement : judgements)
                table.rows.push_back(
                    {{made.item->full_id(), finding->says, finding->paper, compared(*finding, judgement),
                      our_means(*finding, judgement), our_difference(*finding, judgement), outcome_text(judgement)}});
    return table;
}

}  // namespace kvscope::papers

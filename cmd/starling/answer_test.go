package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/foreign"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/doctor"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/recommend"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/node/validator"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/market"
)

// answers are the answers of the commands, by the function that makes them: how many lines they are, and their names.
// Lists that an answer only has are empty or not; neither makes it the list.
func answers() map[string][]answered {
	result := client.Result{Height: 7, Hash: "c0ffee"}
	var receipt rundir.Explanation
	var offer market.Lot
	offer.ID = "starling1a"
	receipt.Job, receipt.Seq = "job-1", 12
	played := variant{Simulation: &simulate.Simulation{}}
	root := played.StateRoot.String()
	account := workerReport{Account: &inspect.AccountStatus{Address: "starling1a"}}
	process := workerReport{Running: true, Process: &provider.WorkerStatus{Address: "starling1b"}}
	return map[string][]answered{
		"figuresAnswer": {{"bars", figuresAnswer(map[string]any{"bars": []int{}}), 1, nil}},
		"planAnswer":    {{"no notes", planAnswer(&plan.Plan{ID: "job-1", Notes: []string{}}), 1, []string{"job-1"}}},
		"trainAnswer": {{"no disputes", trainAnswer(&rundir.Summary{Job: "job-1"}, "out"), 1, []string{"out"}},
			{"a dispute", trainAnswer(&rundir.Summary{Disputes: make([]rundir.DisputeLine, 1)}, "out"), 1, []string{"out"}}},
		"verifyAnswer": {{"a run", verifyAnswer(&verify.Result{}, "out"), 1, []string{"out"}}},
		"modelAnswer":  {{"files", modelAnswer(shown{Files: make([]shownFile, 3)}, "out"), 1, []string{"out"}}},
		"cardAnswer":   {{"a card", cardAnswer("out/README.md", true), 1, []string{"out/README.md"}}},
		"serveAnswer": {{"a server", serveAnswer("http://127.0.0.1:1/v1", []string{"m"}), 1,
			[]string{"http://127.0.0.1:1/v1"}}},
		"exportAnswer":  {{"a file", exportAnswer("csv", "m.csv", 3), 1, []string{"m.csv"}}},
		"explainAnswer": {{"receipts", explainAnswer([]rundir.Explanation{receipt, receipt}), 2, []string{"12", "12"}}},
		"earningsAnswer": {{"receipts", earningsAnswer("a", 1, 0, []rundir.Explanation{receipt}), 1, []string{"job-1 12"}},
			{"none", earningsAnswer("a", 0, 0, nil), 0, []string{}}},
		"simAnswer": {{"one", simAnswer([]variant{played}, nil, false), 1, []string{root}},
			{"kept", simAnswer([]variant{played}, []string{"out"}, false), 1, []string{"out"}},
			{"a sweep", simAnswer([]variant{played, played}, []string{"a", "b"}, true), 2, []string{"a", "b"}},
			{"a sweep of one", simAnswer([]variant{played}, nil, true), 1, []string{root}}},
		"adviceAnswer": {{"candidates",
			adviceAnswer(&recommend.Ranking{Candidates: []recommend.Candidate{{Set: []string{"a=1", "b={c: 2}"}}}}), 1,
			[]string{"--set 'a=1' --set 'b={c: 2}'"}}},
		"logAnswer": {{"two lines", logAnswer(map[string]any{"lines": []string{"a", "b"}}, []string{"a", "b"}), 2,
			nil}},
		"initAnswer": {{"a file", initAnswer("pretrain.yaml", "job.schema.json"), 1, []string{"pretrain.yaml"}}},
		"importAnswer": {{"written", importAnswer(&foreign.Job{Left: []string{}}, "job.yaml"), 1, []string{"job.yaml"}},
			{"printed", importAnswer(&foreign.Job{}, ""), 1, nil}},
		"templatesAnswer": {{"templates", templatesAnswer([]templateLine{{"a", ""}, {"b", ""}}), 2, []string{"a", "b"}}},
		"documentAnswer":  {{"a schema", documentAnswer([]byte("{\n}\n"), "urn:a"), 1, []string{"urn:a"}}},
		"identityAnswer":  {{"a key", identityAnswer(identity{Address: "starling1a"}), 1, []string{"starling1a"}}},
		"accountAnswer": {{"an account", accountAnswer(&session.Account{Address: "starling1a"}), 1,
			[]string{"starling1a"}}},
		"historyAnswer": {{"transactions", historyAnswer("a", []movement{{Hash: "h"}}), 1, []string{"h"}},
			{"none", historyAnswer("a", []movement{}), 0, []string{}}},
		"sentAnswer": {{"coins", sentAnswer("a", "b", "hello", 1, result), 1, []string{"c0ffee"}}},
		"offerAnswer": {{"offers", offerAnswer([]market.Lot{offer}), 1, []string{"starling1a"}},
			{"none", offerAnswer(nil), 0, []string{}}},
		"proposalAnswer": {{"a proposal", proposalAnswer(proposal{ID: 3}), 1, []string{"3"}}},
		"proposalsAnswer": {{"proposals", proposalsAnswer([]proposal{{ID: 4}, {ID: 3}}), 2, []string{"4", "3"}},
			{"none", proposalsAnswer([]proposal{}), 0, []string{}}},
		"proposedAnswer": {{"a proposal", proposedAnswer(3, result), 1, []string{"3"}}},
		"sharesAnswer": {{"holders", sharesAnswer(owned{Holders: []holder{{Account: "starling1a"}}}), 1,
			[]string{"starling1a"}}},
		"stepAnswer":     {{"a pause", stepAnswer("job-1", "pause"), 1, []string{"job-1"}}},
		"operatedAnswer": {{"a bond", operatedAnswer(result), 1, []string{"c0ffee"}}},
		"workerAnswer": {{"on the chain", workerAnswer(&account), 1, []string{"starling1a"}},
			{"running", workerAnswer(&process), 1, []string{"starling1b"}}},
		"drainAnswer":     {{"draining", drainAnswer("net/worker-0", true), 1, []string{"net/worker-0"}}},
		"replayedAnswer":  {{"a chain", replayedAnswer(chain.Replayed{}, "v"), 1, []string{"v"}}},
		"replayAnswer":    {{"a journal", replayAnswer(&journal.Report{}, "e.jsonl"), 1, []string{"e.jsonl"}}},
		"networkAnswer":   {{"made", networkAnswer(&keystore.Network{}, "net"), 1, []string{"net"}}},
		"joinAnswer":      {{"a validator", joinAnswer(&validator.Joined{Home: "v"}), 1, []string{"v"}}},
		"statusAnswer":    {{"idle", statusAnswer(&inspect.NetworkStatus{ChainID: "c", Runs: nil}), 1, []string{"c"}}},
		"validatorAnswer": {{"a validator", validatorAnswer(&inspect.ValidatorStatus{Home: "v"}), 1, []string{"v"}}},
		"booksAnswer": {{"modules", booksAnswer(&inspect.Books{Books: []client.Book{{Module: "market"}}}), 1,
			[]string{"market"}}},
		"quoteAnswer": {{"nobody", quoteAnswer(&plan.Quote{Job: "tiny"}), 1, []string{"tiny"}},
			{"others", quoteAnswer(&plan.Quote{Job: "tiny", Others: make([]plan.Quoted, 2)}), 1, []string{"tiny"}}},
		"doctorAnswer": {{"findings", doctorAnswer(&doctor.Report{Findings: []doctor.Finding{{Check: "disk"}}}), 1,
			[]string{"disk"}}},
		"versionAnswer": {{"a version", versionAnswer(map[string]any{"version": "v1"}, "v1"), 1, []string{"v1"}}},
	}
}

type answered struct {
	name   string
	answer terminal.Answer
	lines  int
	names  []string // nil: it has none
}

// Every answer has all forms: one object, as many lines as it has things, and a name for each.
func TestAnswers(t *testing.T) {
	all := answers()
	for _, f := range answerFunctions(t) {
		if all[f] == nil {
			t.Errorf("%s is not tried", f)
		}
	}
	for f, cases := range all {
		for _, c := range cases {
			print := func(form terminal.Form) (string, error) {
				var b bytes.Buffer
				err := form.Print(&b, c.answer)
				return b.String(), err
			}
			text, err := print(terminal.JSON)
			if err != nil || !strings.HasPrefix(text, "{") || strings.Count(text, "\n") != 1 || untagged(text) {
				t.Errorf("%s, %s: %v\n%s", f, c.name, err, text)
			}
			if text, err := print(terminal.YAML); err != nil || yaml.Unmarshal([]byte(text), &map[string]any{}) != nil {
				t.Errorf("%s, %s: %v\n%s", f, c.name, err, text)
			}
			if text, err := print(terminal.JSONL); err != nil || strings.Count(text, "\n") != c.lines {
				t.Errorf("%s, %s: %v, wanted %d lines\n%s", f, c.name, err, c.lines, text)
			}
			text, err = print(terminal.Name)
			if c.names == nil {
				if terminal.ExitCode(err) != terminal.ExitUsage {
					t.Errorf("%s, %s: %v %q", f, c.name, err, text)
				}
			} else if err != nil || !slices.Equal(slices.Collect(strings.Lines(text)), lines(c.names)) {
				t.Errorf("%s, %s: %v %q, wanted %q", f, c.name, err, text, c.names)
			}
		}
	}
}

func lines(names []string) (all []string) {
	for _, n := range names {
		all = append(all, n+"\n")
	}
	return all
}

// untagged reports whether a key of an object, at any depth, is the name of a field in Go.
func untagged(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return true
	}
	var within func(v any) bool
	within = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if key != "" && key[0] >= 'A' && key[0] <= 'Z' || within(value) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, within)
		}
		return false
	}
	return within(v)
}

// answerFunctions are the functions of this package that make an answer.
func answerFunctions(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Type.Results != nil && len(f.Type.Results.List) == 1 {
				if s, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Answer" {
					names = append(names, f.Name.Name)
				}
			}
		}
	}
	return names
}

package reward

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/reason"
)

// Of every receipt in a world of liars, the arithmetic leads to the amount.
func TestArithmeticLeadsToTheAmount(t *testing.T) {
	kinds := map[Kind]int{}
	for seed := range 20 {
		w := enact(t, job(fmt.Sprint("sum", seed), 3, 3, 2, 1_000_000), []party{
			worker("ann", party{}), worker("bob", party{pace: 30}), worker("liz", party{lies: true}), verifier("vic", party{}),
			verifier("fay", party{lies: seed%2 == 0}),
		})
		for _, r := range w.receipts {
			lines := Arithmetic(r, w.receipts)
			if len(lines) == 0 {
				t.Fatalf("no arithmetic of %+v", r)
			}
			text := strings.Join(lines, "\n")
			if !strings.Contains(text, r.Coin.Text(r.Amount)) || strings.Contains(text, "does not add up") {
				t.Fatalf("%+v\n%s", r, text)
			}
			if r.Kind == Slash && r.Reason != Restitution && len(lines) != 3 {
				t.Errorf("where the slash goes: %s", text)
			}
			kinds[r.Kind]++
		}
	}
	for _, k := range []Kind{Work, Audit, Slash, Bounty, Fee, Refund} {
		if kinds[k] == 0 {
			t.Errorf("no receipt of kind %s was explained", k)
		}
	}
}

func TestArithmeticFindsWrongAmounts(t *testing.T) {
	r := Receipt{Kind: Work, Flops: 2 * cost.Flops, Price: 100, FeePPM: market.FeePPM, Amount: 191, Fee: 10,
		Reason: Verified}
	if text := strings.Join(Arithmetic(r, nil), "\n"); !strings.Contains(text, "does not add up") {
		t.Errorf("%s", text)
	}
	r.Amount, r.Fee, r.Reason = 38, 2, BudgetExhausted
	if text := strings.Join(Arithmetic(r, nil), "\n"); !strings.Contains(text, "no more than 0.00004 ZEN") {
		t.Errorf("%s", text)
	}
}

// reasons lists the values of the constants of a file whose name has a prefix.
func reasons(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING &&
				strings.HasPrefix(v.Names[0].Name, prefix) {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				values[v.Names[0].Name] = text
			}
		}
	}
	if len(values) < 5 {
		t.Fatalf("%s has only the reasons %v", file, values)
	}
	return values
}

// Every reason there is has a sentence, and every reason that costs its receiver something has advice.
func TestEveryConstantIsExplained(t *testing.T) {
	gains := map[string]bool{Verified: true, KeptUptime: true, Served: true, FaultFound: true, RunDone: true,
		AuditMoot: true, FoundOutside: true, PaidIn: true, StoodBy: true,
		ToDelegators: true, FromPool: true}
	for name, reason := range reasons(t, "explain.go", "") {
		if because[reason] == "" || fixes[reason] == "" && !gains[reason] {
			t.Errorf("%s (%s): because %q, fix %q", name, reason, because[reason], fixes[reason])
		}
	}
	// These never reach a receipt: a unit lost by verdict is WrongWork or Forfeited, an audit settled otherwise is
	// AuditMoot, and a member that leaves a run has an event.
	never := map[string]bool{reason.Verdict: true, reason.Convicted: true, reason.Challenged: true,
		reason.MissedDeadlines: true, reason.MissedAudits: true, reason.Withheld: true, reason.MissedAttest: true,
		reason.WrongAttest:  true,
		reason.MissedSlices: true, reason.WrongSlice: true, reason.Unproven: true, reason.OnProbation: true,
		reason.Returning: true, reason.Guest: true, reason.Unattested: true}
	for name, why := range reasons(t, filepath.Join("..", "run", "reason", "reason.go"), "") {
		if because[lostUnit(why)] == "" && because[lostAudit(why)] == "" && !never[why] {
			t.Errorf("reason.%s (%s) is not explained", name, why)
		}
	}
}

package runs

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
)

// charged is an open run with receipts.
type charged struct{}

func (charged) Progress() Progress {
	return Progress{Phase: "training", Workers: 3, PaidUzen: 570_000}
}
func (charged) Books(context.Context) (Payments, error) {
	return Payments{Receipts: []api.Receipt{{Who: "ann", Role: "worker", Kind: "work", Round: 1, Amount: 380_000,
		Fee: 20_000, Reason: "verified"},
		{Who: "vic", Role: "verifier", Kind: "audit", Round: 1, Amount: 95_000, Fee: 5_000, Reason: "verified"},
		{Who: "vic", Role: "verifier", Kind: "audit", Round: 1, Reason: "audit_moot"}}}, nil
}

// The money of an open run is the sum of its receipts, without the fee, plus the later payments of the escrow.
func TestLiveMoneyAddsUp(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	write(t, dir, map[string]string{fileRun: `{"id":"job-1"}`, fileJob: jobFile,
		fileMetrics: metricLines(0) + metricLines(1)})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Attach(dir, charged{}); err != nil {
		t.Fatal(err)
	}
	j := history(t, l, "a").Job
	if j.FeeUzen != 25_000 || j.PaidUzen+j.FeeUzen != 570_000 ||
		j.Audits != (api.AuditCounts{Drawn: 2, Passed: 1, Moot: 1}) {
		t.Errorf("%+v", j)
	}
}

// The amounts of a run in another coin are in its grains from the order on, while the job file has millionths.
func TestAmountsAreInTheCoinOfTheOrder(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), map[string]string{
		fileRun: `{"id":"job-1","coin":{"denom":"ibc/A","symbol":"dai","decimals":18}}`, fileJob: jobFile})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	j := history(t, l, "a").Job
	if c := api.CoinOf(j.Coin); c.Text(j.BudgetUzen) != "5.00 DAI" {
		t.Errorf("a budget of %d in %+v", j.BudgetUzen, c)
	}
}

// The audits of a run that an older version concluded, which counted none as moot, are those of its receipts.
func TestOldTotalsAreCountedAgain(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a"),
		map[string]string{fileRun: `{"id":"job-1","finished":true}`, fileJob: jobFile,
			fileMetrics: metricLines(0) + metricLines(1),
			fileSummary: `{"job":"job-1","audits":{"drawn":2,"passed":1,"failed":0},"rounds":1,"steps":4}`,
			fileReceipts: `{"seq":0,"round":1,"who":"vic","role":2,"kind":"audit","amount":9,"reason":"verified"}` + "\n" +
				`{"seq":1,"round":1,"who":"vic","role":2,"kind":"audit","reason":"audit_moot"}` + "\n"})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if j := history(t, l, "a").Job; j.Audits != (api.AuditCounts{Drawn: 2, Passed: 1, Moot: 1}) {
		t.Errorf("%+v", j.Audits)
	}
}

// A stopped tuning is resumed by OpenAI's interface, and its page names no key that the job file does not have.
func TestStoppedTuningSaysHowItGoesOn(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "ftjob-1"),
		map[string]string{fileJob: strings.Replace(jobFile, "model:", "labels: {"+LabelTuning+": \"{}\"}\nmodel:", 1),
			FileSubmitted: `{"key":"ab","spec":"cd"}`})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if j := history(t, l, "ftjob-1").Job; j.State != "stopped" ||
		!strings.HasPrefix(j.Reason.Next, "POST /v1/fine_tuning/jobs/ftjob-1/resume") {
		t.Errorf("%s %+v", j.State, j.Reason)
	}
}

// The command that resumes a run has the overrides of its job, and the path of its folder relative to where the
// server was started.
func TestResumeIsTheWholeCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, filepath.Join(dir, "out", "one"), map[string]string{fileJob: jobFile,
		fileRun: `{"id":"job-1","job_file":"/jobs/my job.yaml","overrides":["training.max_steps=8","name=it's"]}`})
	l, err := Open("out")
	if err != nil {
		t.Fatal(err)
	}
	want := `starling train '/jobs/my job.yaml' --set training.max_steps=8 --set 'name=it'\''s' --dir out/one --resume`
	if j := history(t, l, "one").Job; j.State != "stopped" || j.Reason.Next != want {
		t.Errorf("%s %+v", j.State, j.Reason)
	}
}

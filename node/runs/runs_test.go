package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/source"
)

const jobFile = `apiVersion: starling/v1
kind: TrainingJob
name: tiny
model:
  architecture: llama
  config: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2,
    intermediate_size: 32, max_position_embeddings: 16}
  tokenizer: {train: {type: bpe, vocab_size: 300}}
datasets: [{path: "*.jsonl", format: jsonl}]
sequence_len: 16
training: {max_steps: 16, global_batch_size: 6, learning_rate: 1.0e-2}
strategy: {sync_steps: 4, workers: 3}
budget: {max_cost: 5}
`

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The dashboard gives the path of a folder relative to where the server was started, where commands find it.
func TestFoldersAreWhereCommandsFindThem(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, filepath.Join(dir, "out", "one"), map[string]string{fileRun: `{"id":"job-1"}`, fileJob: jobFile})
	for _, c := range [][2]string{{"out", "out/one"}, {"./out/one", "out/one"},
		{filepath.Join(dir, "out"), filepath.Join(dir, "out", "one")}} {
		l, err := Open(c[0])
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := l.List(t.Context())
		if err != nil || len(jobs) != 1 || jobs[0].Folder != filepath.FromSlash(c[1]) {
			t.Errorf("%s: %+v, %v", c[0], jobs, err)
		}
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func metricLines(round int) string {
	var b strings.Builder
	if round == 0 {
		return `{"kind":"round","round":0,"step":0,"loss":0,"eval_loss":5.5,"tokens":0,"workers":3}` + "\n"
	}
	for i := range 4 {
		fmt.Fprintf(&b, `{"kind":"step","round":%d,"step":%d,"loss":%g,"learning_rate":1e-05,"tokens":%d,"workers":3}`+"\n",
			round, 4*(round-1)+i+1, 5-float64(round)/2, 96*(4*(round-1)+i+1))
	}
	fmt.Fprintf(
		&b,
		`{"kind":"round","round":%d,"step":%d,"loss":%g,"eval_loss":%g,"learning_rate":0.01,`+
			`"tokens":%d,"tokens_per_second":1500.25,"bytes_up":506,"bytes_down":66151,`+
			`"workers":3,"seconds":0.5,"paid_uzen":%d}`+"\n",
		round,
		4*round,
		5-float64(round)/2,
		5-float64(round)/2,
		384*round,
		30*round,
	)
	return b.String()
}

func lineageLine(round int, root string) string {
	return fmt.Sprintf(
		`{"job":"job-1","round":%d,"state_root":"%s","checkpoint":"bafy","updates":["a"],`+
			`"signers":[{"id":"ann","public_key":"AQI=","signature":"Aw=="}]}`+"\n",
		round,
		strings.Repeat(root, 64),
	)
}

func history(t *testing.T, l *RunStore, id string) *source.History {
	t.Helper()
	f, err := l.one(id)
	if err != nil {
		t.Fatal(err)
	}
	f.looked = time.Time{}
	h, err := f.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A run is followed while it is written, taken back, gone on with and finished.
func TestRunIsFollowed(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "tiny")
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, dir, map[string]string{fileRun: `{"format": 1, "id": "job-1"}`, fileJob: jobFile,
		fileMetrics: metricLines(0) + metricLines(1), fileLineage: lineageLine(1, "1")})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	h := history(t, l, "tiny")
	j := h.Job
	if len(h.Metrics) != 6 || j.Step != 4 || j.Steps != 16 || j.Rounds != 4 || j.BudgetUzen != 5_000_000 ||
		j.State != "stopped" || !strings.Contains(j.Reason.Next, "--resume") || *j.EvalLoss != 4.5 ||
		*j.FirstEvalLoss != 5.5 {
		t.Fatalf("%+v %+v", j, j.Reason)
	}
	if same := history(t, l, "tiny"); same != h {
		t.Error("nothing changed, and the history is another")
	}
	add(t, at(fileMetrics), metricLines(2)[:30]) // cut off for the moment
	if n := len(history(t, l, "tiny").Metrics); n != 6 {
		t.Errorf("%d records of half a line", n)
	}
	add(t, at(fileMetrics), metricLines(2)[30:])
	add(t, at(fileLineage), lineageLine(2, "2"))
	next := history(t, l, "tiny")
	if len(next.Metrics) != 11 || len(next.Lineage) != 2 || next.Version == h.Version || next.Job.SecondsLeft != 1 {
		t.Fatalf("%d metrics, %+v", len(next.Metrics), next.Job)
	}
	replaced := filepath.Join(root, "new")
	add(t, replaced, lineageLine(1, "1")+lineageLine(2, "3"))
	if err := os.Rename(replaced, at(fileLineage)); err != nil {
		t.Fatal(err)
	}
	if got := history(t, l, "tiny").Lineage; len(got) != 2 || got[1].StateRoot[0] != '3' ||
		next.Lineage[1].StateRoot[0] != '2' {
		t.Errorf("a lineage that was replaced: %v; who held the old one has %v", got, next.Lineage)
	}
	f, err := os.OpenFile(at(".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil || syscall.Flock(int(f.Fd()), syscall.LOCK_EX) != nil {
		t.Fatal(err)
	}
	if j := history(t, l, "tiny").Job; j.State != "running" {
		t.Errorf("a run whose folder is locked is %s", j.State)
	}
	_ = f.Close()
	detach, err := l.Attach(dir, alive{})
	if err != nil {
		t.Fatal(err)
	}
	if h := history(t, l, "tiny"); h.Job.State != "running" || h.Job.Phase != "training" || len(h.Receipts) != 1 ||
		len(h.Links) != 1 {
		t.Errorf("%+v", h.Job)
	}
	detach()
	receipts := `{"job":"job-1","seq":0,"height":12,"unit":1,"who":"bob","role":1,"kind":"slash","flops":0,"price":0,` +
		`"amount":9,"fee":0,"reason":"wrong_work","round":2,"explanation":"x"}
{"job":"job-1","seq":1,"height":13,"unit":0,"who":"cas","role":0,"kind":"refund","flops":0,"price":0,` +
		`"amount":40,"fee":0,"reason":"run_done","round":5}
`
	write(t, dir, map[string]string{
		fileReceipts: receipts,
		fileDisputes: `{"worker":"bob","challenger":"vic","round":2,"unit":1,"verdict":"worker_lied",` +
			`"height":12,"log":[{"height":3,"by":"verifier","what":"challenges"}]}` + "\n",
		fileSummary: `{"job":"job-1","name":"tiny","rounds":4,"workers":3,"steps":16,"tokens":512,"seconds":4,` +
			`"budget_uzen":5000000,"paid_uzen":7,"audits":{"drawn":3,"passed":2,"failed":1}}`,
		fileRun: `{"format": 1, "id": "job-1", "finished": true}`, "model.safetensors": "0123456789",
		"config.json": "{}",
	})
	h = history(t, l, "tiny")
	if h.Job.State != "done" || h.Job.TokensPerSecond != 128 || h.Job.Audits.Failed != 1 || len(h.Receipts) != 2 ||
		h.Receipts[0].Dispute == nil || *h.Receipts[0].Dispute != 0 || h.Receipts[0].Round != 2 ||
		h.Receipts[0].Role != "worker" {
		t.Errorf("%+v\n%+v", h.Job, h.Receipts)
	}
	testFiles(t, l, dir)
}

// testFiles looks at what others may have of a run, and at what they may not.
func testFiles(t *testing.T, l *RunStore, dir string) {
	t.Helper()
	for path, text := range map[string]string{"blobs/bafkabc": "blob", "blobs/bafkabc.leaves": "x",
		"network/worker-0/key": "secret", ".lock": ""} {
		write(t, filepath.Dir(filepath.Join(dir, path)), map[string]string{filepath.Base(path): text})
	}
	write(t, filepath.Dir(dir), map[string]string{"secret": "secret"})
	if err := errors.Join(os.Symlink("../secret", filepath.Join(dir, fileLog)),
		os.Symlink("../network/worker-0/key", filepath.Join(dir, "blobs", "bafklink")),
		os.Symlink("network/worker-0/key", filepath.Join(dir, "report.html"))); err != nil {
		t.Fatal(err)
	}
	files, err := l.Files(t.Context(), "tiny")
	if err != nil || len(files) < 7 || files[0].Name != "model.safetensors" || files[0].Bytes != 10 ||
		files[0].Kind != "model" || files[1].Kind != "model" || files[2].Kind != "record" {
		t.Errorf("%v %v", files, err)
	}
	listed := map[string]bool{}
	for _, f := range files {
		listed[f.Name] = true
		r, about, err := l.Open(t.Context(), "tiny", f.Name)
		if err != nil {
			t.Error(f.Name, err)
			continue
		}
		if text, err := io.ReadAll(r); err != nil || int64(len(text)) != about.Bytes || about != f ||
			strings.Contains(string(text), "secret") {
			t.Errorf("%s: %q %v", f.Name, text, err)
		}
		_ = r.Close()
	}
	for _, name := range []string{fileLog, "report.html", "blobs/bafklink", "blobs/bafkabc.leaves",
		"network/worker-0/key", ".lock", "../secret", "blobs/../network/worker-0/key", "/etc/passwd", "blobs", "",
		"run.json"} {
		if _, _, err := l.Open(t.Context(), "tiny", name); !errors.Is(err, failure.ErrNotFound) || listed[name] {
			t.Errorf("%q: %v", name, err)
		}
	}
	if !listed["blobs/bafkabc"] || !listed[fileMetrics] {
		t.Errorf("%v", listed)
	}
}

type alive struct{}

func (alive) Progress() Progress { return Progress{Phase: "training", Workers: 3} }
func (alive) Books(context.Context) (Payments, error) {
	return Payments{Receipts: []api.Receipt{{Seq: 7}}, Links: []api.Link{{By: "bob", Of: "ann", Bytes: 9}}}, nil
}

func TestLibraryFindsRuns(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), map[string]string{fileRun: `{"format":1}`})
	write(t, filepath.Join(root, "sweep", "000"),
		map[string]string{fileSimulation: `{"name":"s","rounds":2,"halted":"no_workers","parties":[{"name":"worker-0"}]}`})
	write(t, filepath.Join(root, ".hidden"), map[string]string{fileRun: `{}`})
	write(t, filepath.Join(root, "1", "2", "3", "4"), map[string]string{fileRun: `{}`})
	write(t, filepath.Join(root, "broken"),
		map[string]string{fileRun: `{`, fileMetrics: "{\nnull\n\n[1]\n" + metricLines(0), fileSummary: `[`})
	write(t, filepath.Join(root, "damaged"),
		map[string]string{fileRun: `{"id":"x","finished":true}`, fileSummary: `{"paid`})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, j := range jobs {
		got[j.ID] = j.Kind + " " + j.State
	}
	if diff := cmp.Diff(map[string]string{"a": "run stopped", "sweep:000": "simulation halted", "broken": "run stopped",
		"damaged": "run done"},
		got); diff != "" {
		t.Error(diff)
	}
	for _, j := range jobs {
		if r := j.Reason; j.ID == "damaged" && (r == nil || !strings.Contains(r.Text, fileSummary)) {
			t.Errorf("%s cannot be read, and the run says %+v", fileSummary, r)
		}
	}
	for _, id := range []string{"..", "../a", "sweep/000", "", "a/../a", ".hidden"} {
		if _, err := l.History(t.Context(), id); !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := Open(filepath.Join(root, "nowhere")); !errors.Is(err, ErrNoRuns) {
		t.Error(err)
	}
	one, err := Open(filepath.Join(root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if jobs, _ := one.List(t.Context()); len(jobs) != 1 || jobs[0].ID != "a" {
		t.Errorf("%v", jobs)
	}
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileLog)
	write(t, filepath.Dir(path), map[string]string{fileLog: "first\nsecond\nthird\ncut"})
	for _, c := range []struct {
		from  int64
		limit int
		lines []string
		to    int64
	}{
		{0, 1000, []string{"first", "second", "third"}, 19}, {-12, 1000, []string{"third"}, 19},
		{-1 << 62, 1000, []string{"first", "second", "third"}, 19}, {6, 8, []string{"second"}, 13},
		{19, 1000, []string{}, 19}, {1 << 40, 1000, []string{}, 22}, {0, 3, []string{"fir"}, 3},
		{math.MinInt64, 6, []string{"first"}, 6},
	} {
		got, err := Tail(path, c.from, c.limit)
		if err != nil || !cmp.Equal(got.Lines, c.lines) || got.To != c.to || got.Size != 22 {
			t.Errorf("from %d: %+v %v", c.from, got, err)
		}
	}
}

// A job that was submitted is there before it begins, and says how it ended where its files do not.
func TestSubmittedJobIsShown(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "tiny")
	write(t, dir, map[string]string{FileSubmitted: `{"key": "cd", "spec": "ab", "set": ["training.max_steps=8"]}`,
		fileJob: jobFile})
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(state, code string) api.Job {
		t.Helper()
		j := history(t, l, "tiny").Job
		if j.State != state || j.Reason == nil || j.Reason.Code != code {
			t.Errorf("%s %+v, wanted %s %s", j.State, j.Reason, state, code)
		}
		return j
	}
	if j := shown("stopped", "stopped"); j.Steps != 8 || !strings.Contains(j.Reason.Next, "same Idempotency-Key") {
		t.Errorf("%+v %+v", j, j.Reason)
	}
	detach, err := l.Attach(dir, waits{})
	if err != nil {
		t.Fatal(err)
	}
	shown("queued", "busy")
	write(t, dir, map[string]string{FileSubmitted: `{"spec": "ab", "state": "failed", "reason": {"code": "DISK_FULL", ` +
		`"text": "no room"}}`})
	shown("queued", "busy") // it continues after each of these states
	detach()
	shown("failed", "DISK_FULL")
	write(t, dir, map[string]string{FileSubmitted: `{"spec": "ab"}`})
	if j := shown("stopped", "stopped"); !strings.Contains(j.Reason.Next, "begins from the start") {
		t.Errorf("without a key: %+v", j.Reason)
	}
	write(t, dir, map[string]string{fileRun: `{"format": 1, "id": "job-1", "finished": true}`})
	if j := history(t, l, "tiny").Job; j.State != "done" || j.Reason != nil {
		t.Errorf("%s %+v", j.State, j.Reason)
	}
}

// waits is Live for a job whose turn has not come.
type waits struct{}

func (waits) Progress() Progress { return Progress{Queued: true, Why: &api.Reason{Code: "busy"}} }
func (waits) Books(context.Context) (Payments, error) {
	return Payments{}, errors.New("none yet")
}

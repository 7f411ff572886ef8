package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
)

func mustTrain(t *testing.T, opt consumer.Options) *rundir.Summary {
	t.Helper()
	s, err := Train(t.Context(), opt)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(opt.Dir, rundir.FileLog))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-8000):])
	}
	if s.BudgetUzen != s.PaidUzen+s.FeeUzen+s.RefundedUzen {
		t.Errorf("budget %d is not paid %d + fee %d + refunded %d", s.BudgetUzen, s.PaidUzen, s.FeeUzen, s.RefundedUzen)
	}
	return s
}

func readReceipts(t *testing.T, dir string) []reward.Receipt {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, rundir.FileReceipts))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []reward.Receipt
	for s := bufio.NewScanner(f); s.Scan(); {
		var r reward.Receipt
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// The whole life of a job: trained by honest workers, then with a cheating worker, whose work changes nothing but its
// own stake.
func TestTrainVerifyAndLiar(t *testing.T) {
	j := jobtest.Small(t)
	honest := filepath.Join(t.TempDir(), "honest")
	s := mustTrain(t, consumer.Options{Job: j, Dir: honest})
	if s.Rounds != 3 || s.Steps != 12 || s.Tokens != 12*6*16 || len(s.Disputes) != 0 || s.SlashedUzen != 0 ||
		s.PaidUzen == 0 {
		t.Errorf("summary of the honest run: %+v", s)
	}
	if s.Audits.Drawn == 0 || s.Audits.Passed != s.Audits.Drawn || s.Audits.Failed != 0 {
		t.Errorf("audits of the honest run: %+v", s.Audits)
	}
	if !(s.FinalEvalLoss < s.FirstEvalLoss) || math.IsNaN(s.FinalEvalLoss) {
		t.Errorf("eval loss went from %v to %v", s.FirstEvalLoss, s.FinalEvalLoss)
	}
	for _, name := range []string{prepare.FileModel, prepare.FileConfig, prepare.FileTokenizer, rundir.FileMetrics,
		rundir.FileLineage, rundir.FileReceipts, rundir.FileReport, rundir.FileSummary, rundir.FileLog} {
		if info, err := os.Stat(filepath.Join(honest, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	metrics, err := (&rundir.OutDir{Path: honest}).ReadMetrics()
	if err != nil {
		t.Fatal(err)
	}
	jobtest.CheckMetrics(t, metrics)
	checkLinks(t, honest)
	if _, err := os.Stat(filepath.Join(honest, rundir.DirNetwork)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the embedded network was left behind: %v", err)
	}

	t.Run("verify", func(t *testing.T) { testVerify(t, honest, s) })
	t.Run("ipfs", func(t *testing.T) { testIPFS(t, honest) })
	t.Run("tampering", func(t *testing.T) { testTampering(t, j, honest) })
	t.Run("one thread", func(t *testing.T) {
		onlyLong(t)
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		if again := mustTrain(t, consumer.Options{Job: j,
			Dir: filepath.Join(t.TempDir(), "again")}); again.StateRoot != s.StateRoot {
			t.Errorf("state root %v on one thread, %v before", again.StateRoot, s.StateRoot)
		}
	})
	t.Run("liar", func(t *testing.T) { testLiar(t, j, s) })
	t.Run("simulated", func(t *testing.T) { testSimulated(t, j, s) })
	t.Run("finished", func(t *testing.T) {
		if _, err := Train(t.Context(), consumer.Options{Job: j, Dir: honest}); !errors.Is(err, rundir.ErrFinished) {
			t.Errorf("training over a finished run: %v", err)
		}
	})
}

// checkLinks checks that each of four members is said to have fetched from others, and none from itself.
func checkLinks(t *testing.T, dir string) {
	t.Helper()
	links, err := rundir.ReadLines[api.Link](filepath.Join(dir, rundir.FileLinks))
	if err != nil {
		t.Fatal(err)
	}
	earned, fetched := map[string]bool{}, map[string]bool{}
	for _, r := range readReceipts(t, dir) {
		earned[r.Who] = true
	}
	for _, l := range links {
		if fetched[l.By] = true; l.By == l.Of || !earned[l.By] || !earned[l.Of] || l.Bytes == 0 || l.RTT == 0 {
			t.Errorf("%+v", l)
		}
	}
	if len(fetched) < 4 {
		t.Errorf("%d fetched: %+v", len(fetched), links)
	}
}

func testVerify(t *testing.T, dir string, s *rundir.Summary) {
	v, err := verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || v.StateRoot != s.StateRoot || len(v.Rounds) != 3 || !v.Complete {
		t.Fatalf("%+v, %v", v, err)
	}
	// Of a tokenizer of bytes, a token is eight bits' worth of text: the loss in bits.
	e, err := verify.EvaluateRun(t.Context(), dir, 1)
	if err != nil || e.Loss != s.FinalEvalLoss || e.BitsPerByte != s.BitsPerByte || e.Bytes != e.Tokens ||
		math.Abs(e.BitsPerByte-e.Loss/math.Ln2) > 1e-12 {
		t.Errorf("%+v, %v; the summary has %v and %v", e, err, s.FinalEvalLoss, s.BitsPerByte)
	}
	for round := 1; round <= 3; round++ {
		if v, err := verify.Run(t.Context(), dir, verify.Options{Round: round}); err != nil || len(v.Rounds) != 1 {
			t.Errorf("round %d: %+v, %v", round, v, err)
		}
	}
	var differs *verify.MismatchError
	if _, err := verify.Run(t.Context(), dir, verify.Options{Round: 4}); !errors.As(err, &differs) {
		t.Errorf("a round that is not there: %v", err)
	}
}

// One changed byte, in any file that the run depends on, is found.
func testTampering(t *testing.T, j *job.Job, dir string) {
	files := []string{filepath.Join(dir, prepare.FileModel), filepath.Join(filepath.Dir(j.Path), "text.txt")}
	blobs, err := filepath.Glob(filepath.Join(dir, rundir.DirBlobs, "*"))
	if err != nil || len(blobs) < 5 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	o := &rundir.OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		t.Fatal(err)
	}
	lines, err := rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	if err != nil || !slices.Contains(blobs, filepath.Join(dir, rundir.DirBlobs, lines[len(lines)-1].Checkpoint)) {
		t.Errorf("no blob has the name of the checkpoint that the lineage names: %v", err)
	}
	needed := filepath.Join(dir, rundir.DirBlobs, o.Run.Blobs.Manifest)
	if err := os.Rename(needed, needed+".away"); err != nil {
		t.Fatal(err)
	}
	var lacking *verify.IncompleteError
	if _, err := verify.Run(t.Context(), dir, verify.Options{}); !errors.As(err, &lacking) {
		t.Errorf("a blob is missing, and verify says: %v", err)
	}
	if err := os.Rename(needed+".away", needed); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, blobs...) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		flip(t, f, int(info.Size())/2, dir)
	}
	lineage := filepath.Join(dir, rundir.FileLineage)
	text, err := os.ReadFile(lineage)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(text); at += 41 {
		flip(t, lineage, at, dir)
	}
	if _, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil {
		t.Fatalf("restored, and yet: %v", err)
	}
}

func flip(t *testing.T, file string, at int, dir string) {
	t.Helper()
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte(nil), was...)
	changed[at] ^= 1
	if err := os.WriteFile(file, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if v, err := verify.Run(t.Context(), dir, verify.Options{}); err == nil {
		t.Errorf("byte %d of %s was changed, and %+v was verified", at, filepath.Base(file), v)
	}
	if err := os.WriteFile(file, was, 0o644); err != nil {
		t.Fatal(err)
	}
}

func testLiar(t *testing.T, j *job.Job, honest *rundir.Summary) {
	dir := filepath.Join(t.TempDir(), "liar")
	var live *dashboard.LiveRun
	var taken []rundir.Explanation // as starling account stake slashes lists it
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir, Dishonest: 1,
		Shown: func(l runs.Live) { live = l.(*dashboard.LiveRun) }, Progress: func(consumer.Progress) {
			if c, err := live.View.Client(); err == nil && len(taken) == 0 {
				if taken, err = inspect.SlashesOf(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		}})
	if len(s.Disputes) == 0 || s.SlashedUzen == 0 || s.Audits.Failed == 0 {
		t.Fatalf("the liar was not caught: %+v", s)
	}
	type unit struct{ round, index uint32 }
	// rounds before that of a verdict may have further cheating units, already in dispute
	liar, lies := "", map[unit]bool{}
	for _, d := range s.Disputes {
		switch d.Verdict {
		case "worker_lied":
			lie := unit{d.Round, d.Unit}
			if lies[lie] || liar != "" && liar != d.Worker {
				t.Errorf("a second verdict, or against another: %+v", d)
			}
			liar, lies[lie] = d.Worker, true
		case "moot": // of a round that was rolled back; it may be about a fault that was planted
		default:
			t.Errorf("dispute %+v", d)
		}
		if d.Reason == dispute.Recomputed && (d.Leaf != "tile" || d.LeafBytes == 0 || d.LeafBytes > 1<<20 || d.LeafMS <= 0) {
			t.Errorf("leaf of dispute %+v", d)
		}
	}
	cost, lost := map[unit]uint64{}, uint64(0) // what each took of the stake; rounds of the file are counted from 1
	for _, r := range readReceipts(t, dir) {
		if r.Kind == reward.Slash {
			lie := unit{r.Round, r.Unit}
			lost += r.Amount
			switch {
			case r.Reason == reward.Restitution: // for the rounds that the cheating unit undid
			case cost[lie] > 0:
				t.Errorf("slashed a second time: %+v", r)
			default:
				cost[lie] = r.Amount
			}
		}
		if r.Who == liar && r.Kind != reward.Slash && r.Amount > 0 {
			t.Errorf("the liar was paid: %+v", r)
		}
		if r.Who != liar && r.Kind == reward.Slash {
			t.Errorf("an honest party was slashed: %+v", r)
		}
	}
	if len(cost) != len(lies) || lost != s.SlashedUzen {
		t.Errorf("%d verdicts, slashes %v, in the summary %d uzen", len(lies), cost, s.SlashedUzen)
	}
	taken = slices.DeleteFunc(taken, func(e rundir.Explanation) bool { return e.Reason == reward.Restitution })
	if len(taken) == 0 || len(taken) > len(lies) {
		t.Errorf("slashes: %+v", taken)
	}
	for _, e := range taken {
		if lie := (unit{e.Round, e.Unit}); e.Who != liar || e.Amount == 0 || e.Amount != cost[lie] || e.Job != s.Job ||
			e.Role != "worker" || !lies[lie] {
			t.Errorf("slash %+v", e)
		}
	}
	explainsLiar(t, dir, liar)
	if s.StateRoot != honest.StateRoot {
		t.Errorf("the liar changed the model: %v, honest %v", s.StateRoot, honest.StateRoot)
	}
	if _, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil {
		t.Error(err)
	}
}

// explainsLiar checks that the moves of its dispute explain the cheating worker's loss.
func explainsLiar(t *testing.T, dir, liar string) {
	t.Helper()
	all, err := rundir.Explain(dir, "")
	if err != nil || len(all) != len(readReceipts(t, dir)) {
		t.Fatalf("%d receipts explained: %v", len(all), err)
	}
	slashed := false
	for i, e := range all {
		one, err := rundir.Explain(dir, fmt.Sprint(i))
		if err != nil || len(one) != 1 || one[0].Seq != uint64(i) {
			t.Fatalf("receipt %d: %+v, %v", i, one, err)
		}
		if e.Why == "" || len(e.Arithmetic) == 0 {
			t.Errorf("receipt %d is not explained: %+v", i, e)
		}
		if e.Kind == reward.Slash && e.Reason != reward.Restitution && e.Who == liar {
			slashed = e.Dispute != nil && e.Dispute.Worker == liar && len(e.Dispute.Log) > 1
		}
	}
	if !slashed {
		t.Error("the slash of the liar is not explained by its dispute")
	}
	if mine, err := rundir.Explain(dir, liar[:20]); err != nil || len(mine) == 0 || mine[0].Who != liar {
		t.Errorf("receipts of %s: %+v, %v", liar, mine, err)
	}
	if _, err := rundir.Explain(dir, "100000"); !errors.Is(err, rundir.ErrNoReceipt) {
		t.Errorf("no such receipt: %v", err)
	}
}

// A run that is stopped resumes where it was, and ends where it would have ended. Rounds that are reduced in slices
// end at the same state root as rounds without slices, and can be verified.
func TestTrainInSlices(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	j := jobtest.Small(t)
	whole := mustTrain(t, consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "whole")})
	// an account of the embedded network has as much in addition
	sliced, err := job.Load(j.Path, "strategy.aggregation.slices=3", "budget.max_cost=2000000")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "slices")
	s := mustTrain(t, consumer.Options{Job: sliced, Dir: dir})
	if s.StateRoot != whole.StateRoot || s.Rounds != whole.Rounds {
		t.Errorf("in slices %s after %d rounds, whole %s after %d", s.StateRoot.Short(), s.Rounds, whole.StateRoot.Short(),
			whole.Rounds)
	}
	if v, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil || v.StateRoot != s.StateRoot {
		t.Errorf("%+v, %v", v, err)
	}
}

// A run whose units pass on their state, and which is stopped within a group, resumes where it was, ends where a
// simulation of it ends, and can be verified.
func TestTrainReplicas(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]string{
		"fragments that overlap": {"strategy.optimizer_state_rounds=null",
			"strategy.replicas={fragments: 2, overlap: 1, rounds: 3}"},
		"asynchronous": {"strategy.optimizer_state_rounds=null", "strategy.method=async_diloco",
			"strategy.replicas.overlap=0.5", "strategy.workers={target: 3, relative_speeds: [0.5, 1, 0.5]}"},
		"moments":      {"strategy.optimizer_state_rounds=3"},
		"the defaults": {"strategy.optimizer_state_rounds=null"},
	} {
		if !*long && name != "fragments that overlap" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testReplicas(t, set...)
		})
	}
}

func testReplicas(t *testing.T, set ...string) {
	j, err := job.Load(jobtest.Small(t).Path,
		append(set, "strategy.replicas.rounds=3", "strategy.sync_steps=2", "training.max_steps=8")...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "stopped")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := Train(ctx, consumer.Options{Job: j, Dir: dir, Progress: func(p consumer.Progress) {
		if p.Round == 1 {
			stop()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped after a round: %v", err)
	}
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir, Resume: true})
	if sizes := j.Strategy.Workers.RelativeSpeeds; sizes != nil && s.Tokens != 4*(1+2+1)*2*16 {
		t.Errorf("%d tokens in 4 rounds of 4 steps of 2 sequences of 16", s.Tokens)
	}
	if played := mustSimulate(t, simulate.Options{Job: j, Seed: 1}); s.Rounds != 4 || s.StateRoot != played.StateRoot ||
		s.SlashedUzen != 0 {
		t.Errorf("%d rounds to %v, simulated %v; %d uzen slashed", s.Rounds, s.StateRoot, played.StateRoot, s.SlashedUzen)
	}
	if v, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil || v.StateRoot != s.StateRoot {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	j := jobtest.Small(t)
	whole := mustTrain(t, consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "whole")})
	dir := filepath.Join(t.TempDir(), "stopped")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Train(ctx, consumer.Options{Job: j, Dir: dir, Progress: func(p consumer.Progress) {
		if p.Round == 1 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped after a round: %v", err)
	}
	if err := rundir.Probe(dir); !errors.Is(err, rundir.ErrUnfinished) {
		t.Fatalf("%v", err)
	}
	if _, err := Train(t.Context(), consumer.Options{Job: j, Dir: dir}); !errors.Is(err, rundir.ErrUnfinished) {
		t.Fatalf("started over an unfinished run: %v", err)
	}
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir, Resume: true})
	if s.StateRoot != whole.StateRoot || s.Rounds != 3 {
		t.Errorf("%d rounds to %v, undisturbed %v", s.Rounds, s.StateRoot, whole.StateRoot)
	}
	metrics, err := (&rundir.OutDir{Path: dir}).ReadMetrics()
	if err != nil || len(metrics) != 12+4 {
		t.Errorf("%d lines of metrics, want 16 (%v)", len(metrics), err)
	}
	for _, m := range metrics {
		if m.Time.IsZero() != (m.Kind == "step") {
			t.Errorf("%+v was recorded at %v", m, m.Time)
		}
	}
}

func mustSimulate(t *testing.T, opt simulate.Options) *simulate.Simulation {
	t.Helper()
	opt.Gflops, opt.Validators, opt.BlockTime, opt.Threads = []float64{1}, 2, time.Second, 1
	if len(opt.Links) == 0 {
		opt.Links = []link.Link{link.Profiles["home"]}
	}
	s, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testSimulated plays a job that was run, under virtual time: it ends in the same state on every network.
func testSimulated(t *testing.T, j *job.Job, trained *rundir.Summary) {
	for name, opt := range map[string]simulate.Options{
		"as it was":         {Seed: 1},
		"on two continents": {Seed: 2, Links: []link.Link{link.Profiles["global"], link.Profiles["bad"]}},
		"with a crash":      {Seed: 3, Faults: []sim.Fault{{At: 5 * time.Second, For: 10 * time.Second, Who: "worker-1"}}},
		"with a liar":       {Seed: 4, Acts: map[string]string{"worker-2": "skips"}},
	} {
		t.Run(name, func(t *testing.T) {
			opt.Job = j
			s := mustSimulate(t, opt)
			if s.StateRoot != trained.StateRoot || s.FinalEvalLoss != trained.FinalEvalLoss || s.Rounds != trained.Rounds {
				t.Errorf("%d rounds end in %v at %v, the run's %d in %v at %v", s.Rounds, s.StateRoot, s.FinalEvalLoss,
					trained.Rounds, trained.StateRoot, trained.FinalEvalLoss)
			}
			for _, p := range s.Parties {
				if liar := opt.Acts[p.Name] != ""; liar != (p.SlashedUzen > 0) {
					t.Errorf("%+v, liar: %v", p, liar)
				}
			}
			if !(s.Utilisation > 0 && s.Utilisation <= 1) || !(s.Seconds > 0) {
				t.Errorf("utilisation %v, %v s", s.Utilisation, s.Seconds)
			}
		})
	}
}

package cohort_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/simulate/cohort"
	"github.com/starling-network/starling/sim/link"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "drop out in every phase, and crash")

const file = `apiVersion: starling/v1
kind: FederatedJob
name: words
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}}
datasets: [{path: "*.txt"}]
sequence_len: 16
val_set_size: 0.2
training: {max_steps: 12, global_batch_size: 4, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 2, round_timeout: 60s}
federated: {owners: 5, min_cohort: 3, clip: 10}
`

// load is a job, and the folders of its five owners.
func load(t *testing.T, set ...string) (*job.Job, []string) {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "job.yaml"), file)
	write(filepath.Join(dir, "a.txt"), strings.Repeat("a bird sings. ", 200))
	var data []string
	for i := range 5 {
		data = append(data, filepath.Join(dir, fmt.Sprint(i)))
		write(filepath.Join(data[i], "own.txt"), strings.Repeat(fmt.Sprintf("the bird of owner %d sings. ", i), 100))
	}
	j, err := job.ReadFederated(filepath.Join(dir, "job.yaml"), set...)
	if err != nil {
		t.Fatal(err)
	}
	return j, data
}

// play simulates a job, and returns the lines of its events, too.
func play(t *testing.T, change func(*cohort.Options), set ...string) (*cohort.Simulation, string) {
	t.Helper()
	j, data := load(t, set...)
	home, err := link.Parse("home")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	opt := cohort.Options{Job: j, Data: data, Dir: t.TempDir(), Seed: 1, Links: []link.Link{home}, Gflops: []float64{0.01},
		Phase: 5 * time.Second, Threads: 1, Events: func(line string) { lines.WriteString(line + "\n") }}
	change(&opt)
	s, err := cohort.Run(context.Background(), opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, lines.String())
	}
	return s, lines.String()
}

// A simulation has the model, to the bit, of owners that connect to a coordinator over HTTP by the clock of the
// machine, and the same events each time.
func TestASimulationHasTheModelOfTheJob(t *testing.T) {
	const short = "training.max_steps=4"
	j, data := load(t, short)
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := federated.New(b, federated.Options{Dir: t.TempDir(), Phase: time.Minute, Threads: 1, Say: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(wire.Handler(c, c.Job(), wire.Wall{}))
	defer server.Close()
	var running sync.WaitGroup
	for i, d := range data {
		running.Go(func() {
			h, err := owner.OpenHome(t.TempDir())
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			if _, err := owner.Join(context.Background(), owner.Options{URL: server.URL, HTTP: http.DefaultClient, Home: h,
				Data: d, Threads: 1, Budget: owner.Budget{Unit: protocol.OfOwner, Delta: 1e-5}, Retry: time.Minute,
				Say: func(string) {}}); err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
		})
	}
	want, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Linger(context.Background(), time.Minute)
	running.Wait()
	got, events := play(t, func(*cohort.Options) {}, short)
	if got.Model != want.Model || *got.FinalLoss != *want.FinalLoss || got.Rounds != 2 || want.Rounds != 2 ||
		got.MinCohort != 5 {
		t.Errorf("%+v, and by the clock of the machine %+v", got.Report, want)
	}
	again, same := play(t, func(*cohort.Options) {}, short)
	if same != events || again.Seconds != got.Seconds {
		t.Errorf("another run of the same seed has other events:\n%s\nand\n%s", events, same)
	}
	for _, p := range got.Parties {
		if p.BytesUp < 1<<10 || p.BytesDown < 1<<10 || p.WorkedSeconds <= 0 || p.Failed != "" {
			t.Errorf("%+v", p)
		}
	}
}

// An owner that is late in a phase has dropped out there, and the others have a sum.
func TestOwnersDropOutInEachPhase(t *testing.T) {
	for _, p := range protocol.Phases {
		if p != protocol.Survivors && !*long {
			continue
		}
		s, events := play(t, func(o *cohort.Options) { o.Acts = map[string]string{"owner-2": cohort.Late + string(p)} },
			"training.max_steps=4")
		dropouts := 0
		for _, n := range s.Dropouts {
			dropouts += n
		}
		if s.Rounds != 2 || s.Void != 0 || p != protocol.Keys && dropouts == 0 || p == protocol.Keys && s.MinCohort != 4 ||
			s.Parties[2].Failed != "" {
			t.Errorf("late in %s: %+v\n%s", p, s.Report, events)
		}
	}
}

// Owners crash and come back, one is cut off, and the coordinator crashes: only the round that it had begun has no sum.
func TestPartiesThatComeAndGo(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	s, events := play(t, func(o *cohort.Options) {
		o.Faults = []cohort.Fault{{Who: "owner-0", At: 1680 * time.Millisecond, For: 3 * time.Second},
			{Who: "owner-3", From: cohort.Coordinator, At: 8 * time.Second, For: 6 * time.Second},
			{Who: cohort.Coordinator, At: 16 * time.Second, For: 5 * time.Second}}
	}, "strategy.round_timeout=10s", "training.max_steps=16")
	if s.Rounds+s.Void != 8 || s.Void > 1 || s.MinCohort != 4 || !(*s.FinalLoss < *s.FirstLoss) ||
		!strings.Contains(events, "owner-0 crashes") || !strings.Contains(events, "coordinator crashes") {
		t.Errorf("%+v\n%s", s.Report, events)
	}
}

// A sum with a vector of random bytes is not applied, in any round.
func TestGarbageIsNotApplied(t *testing.T) {
	s, events := play(t, func(o *cohort.Options) { o.Acts = map[string]string{"owner-1": cohort.Garbage} },
		"training.max_steps=4")
	if s.Rounds != 0 || s.Void != 2 || !strings.Contains(events, "an owner sent another one") {
		t.Errorf("%+v\n%s", s.Report, events)
	}
}

func TestSimulationsThatAreRefused(t *testing.T) {
	home, err := link.Parse("lan")
	if err != nil {
		t.Fatal(err)
	}
	cut := func(o *cohort.Options) { o.Faults = []cohort.Fault{{Who: "owner-0", From: "owner-1"}} }
	for name, c := range map[string]struct {
		change func(*cohort.Options)
		is     error
	}{
		"an act of nobody":  {func(o *cohort.Options) { o.Acts = map[string]string{"owner-9": "garbage"} }, cohort.ErrParty},
		"a crash of nobody": {func(o *cohort.Options) { o.Faults = []cohort.Fault{{Who: "worker-0"}} }, cohort.ErrParty},
		"a cut of owners":   {cut, cohort.ErrParty},
		"owners too few":    {func(o *cohort.Options) { o.Data = o.Data[:2] }, cohort.ErrStalled},
	} {
		j, data := load(t)
		opt := cohort.Options{Job: j, Data: data, Dir: t.TempDir(), Links: []link.Link{home}, Gflops: []float64{1},
			Phase: time.Second, Threads: 1}
		c.change(&opt)
		if _, err := cohort.Run(context.Background(), opt); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

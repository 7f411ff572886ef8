package sim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/recommend"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/sim"
)

func TestParseFault(t *testing.T) {
	f, err := parseFault("worker-1@30s+1m")
	if want := (sim.Fault{Who: "worker-1", At: 30 * time.Second, For: time.Minute}); err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
	for _, text := range []string{"", "worker-1", "worker-1@30s", "worker-1+30s", "worker-1@x+1s", "worker-1@1s+x",
		"worker-1@-1s+1s"} {
		if _, err := parseFault(text); err == nil {
			t.Errorf("%q is taken for a fault", text)
		}
	}
}

func TestSweeps(t *testing.T) {
	all, err := sweeps([]string{"a.b=1,2", "c=x,y,z"})
	if err != nil || len(all) != 6 || all[0] != nil &&
		(all[0][0] != [2]string{"a.b", "1"} || all[5][1] != [2]string{"c", "z"}) {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := sweeps(nil); err != nil || len(all) != 1 || all[0] != nil {
		t.Errorf("no sweep: %v, %v", all, err)
	}
	if _, err := sweeps([]string{"a"}); err == nil {
		t.Error("a sweep without values")
	}
	if _, err := sweeps([]string{"a=" + strings.Repeat("1,", maxSweep)}); err == nil {
		t.Error("a sweep without end")
	}
}

func TestSimFlags(t *testing.T) {
	good := options{links: []string{"lan"}, gflops: []float64{1}, validators: 1, block: time.Second, threads: 1,
		acts: []string{"worker-1=skips"}, cuts: []string{"worker-0/worker-1@1s+2s"}}
	o, err := good.read()
	if err != nil || len(o.Acts) != 1 || len(o.Faults) != 1 || o.Faults[0].From != "worker-1" {
		t.Fatalf("%+v, %v", o, err)
	}
	for name, spoil := range map[string]func(*options){
		"a link":           func(f *options) { f.links = []string{"wet string"} },
		"a speed":          func(f *options) { f.gflops = []float64{0} },
		"an act":           func(f *options) { f.acts = []string{"worker-1=dances"} },
		"a cut":            func(f *options) { f.cuts = []string{"worker-1@1s+2s"} },
		"a crash":          func(f *options) { f.crashes = []string{"worker-1"} },
		"no validator":     func(f *options) { f.validators = 0 },
		"no time a block":  func(f *options) { f.block = 0 },
		"negative numbers": func(f *options) { f.verifiers = -1 },
	} {
		f := good
		spoil(&f)
		if _, err := f.read(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The names that the simulator lists are accepted by its flags.
func TestNamesAreTaken(t *testing.T) {
	f := options{verifiers: 1, validators: 1, threads: 1, block: time.Second, gflops: []float64{1}}
	for _, a := range attacks() {
		f.acts = append(f.acts, "worker-0="+a.Name)
		if a.About == "" {
			t.Errorf("%s is nothing", a.Name)
		}
	}
	for _, p := range profiles() {
		f.links = append(f.links, p.Name)
	}
	if _, err := f.read(); err != nil {
		t.Error(err)
	}
	for _, m := range methods() {
		if _, err := job.Load("../../../examples/quickstart.yaml",
			"strategy={workers: 4, sync_steps: 1, method: "+m.Name+"}"); err != nil {
			t.Error(err)
		}
	}
}

// A folder that holds a run is refused before anything is simulated.
func TestSimulationFolders(t *testing.T) {
	if dirs := (options{}).folders(3); dirs != nil {
		t.Errorf("without --dir: %v", dirs)
	}
	f := options{dir: t.TempDir()}
	dirs := f.folders(3)
	if whole := f.whole(dirs); len(whole) != 1 || whole[0] != f.dir || f.whole(f.folders(1)) != nil ||
		f.whole(nil) != nil {
		t.Errorf("what compares three goes to %v", whole)
	}
	if err := vacant(append(dirs, f.folders(1)...), false); err != nil {
		t.Errorf("empty folders: %v", err)
	}
	err := errors.Join(os.Mkdir(dirs[1], 0o755),
		os.WriteFile(filepath.Join(dirs[1], "run.json"), []byte(`{"format": 1, "id": "job-1"}`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	if err := vacant(dirs, true); terminal.ExitCode(err) != terminal.ExitConflict ||
		!strings.Contains(err.Error(), dirs[1]) {
		t.Errorf("a folder with a run: %v", err)
	}
}

// A flag that has no meaning for advice is refused, and not ignored.
func TestAdviceGoesWithItsFlags(t *testing.T) {
	for _, more := range [][]string{{"--sweep", "seed=1,2"}, {"--dir", t.TempDir()}, {"--crash", "worker-0@1s+1s"},
		{"--price", "-1"}, {"--modelled"}} {
		c := &terminal.Console{}
		cmd := Command(c)
		cmd.SetArgs(append([]string{"../../../examples/quickstart.yaml", "--advise"}, more...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("%v: %v", more, err)
		}
	}
}

// A simulation goes by its folder, or by the root in which it ended; a candidate by the flags that choose it.
func TestNamesOfAnswers(t *testing.T) {
	played := variant{Simulation: &simulate.Simulation{}}
	root := played.StateRoot.String()
	candidates := []recommend.Candidate{{Set: []string{"a=1", "b={c: 2}"}}}
	for want, a := range map[string]terminal.Answer{
		root + "\n":                      simAnswer([]variant{played}, nil, false),
		"out\n":                          simAnswer([]variant{played}, []string{"out"}, false),
		"a\nb\n":                         simAnswer([]variant{played, played}, []string{"a", "b"}, true),
		root + "\n" + root + "\n":        simAnswer([]variant{played, played}, nil, true),
		"--set 'a=1' --set 'b={c: 2}'\n": adviceAnswer(&recommend.Ranking{Candidates: candidates}),
	} {
		var b bytes.Buffer
		if err := terminal.Name.Print(&b, a); err != nil || b.String() != want {
			t.Errorf("%q, want %q (%v)", b.String(), want, err)
		}
	}
}

func TestLeft(t *testing.T) {
	for _, c := range []struct {
		took      time.Duration
		done, all int
		want      string
	}{{time.Second, 0, 3, ""}, {90 * time.Second, 1, 3, ", about 3m0s left"}, {time.Minute, 2, 3, ", about 30s left"}} {
		if got := left(c.took, c.done, c.all); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestFlagsOfOwners(t *testing.T) {
	dir := t.TempDir()
	good := options{links: []string{"lan"}, gflops: []float64{1}, validators: 1, block: time.Second, threads: 1,
		acts: []string{"owner-1=late-vectors"}, crashes: []string{"coordinator@1s+2s"}, data: []string{dir},
		phase: time.Second}
	o, err := good.ofOwners()
	if err != nil || len(o.Acts) != 1 || len(o.Faults) != 1 || len(o.Data) != 1 || o.Phase != time.Second {
		t.Fatalf("%+v, %v", o, err)
	}
	for name, spoil := range map[string]func(*options){
		"an act of workers": func(f *options) { f.acts = []string{"owner-1=skips"} },
		"no such folder":    func(f *options) { f.data = []string{dir + "/none-*"} },
		"no time":           func(f *options) { f.phase = 0 },
		"no link":           func(f *options) { f.links = nil },
	} {
		f := good
		spoil(&f)
		if _, err := f.ofOwners(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

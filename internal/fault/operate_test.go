package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// office are the hosts of docs/operate.md.
var office = []string{"10.0.0.7", "10.0.0.8", "10.0.0.9"}

// TestOperate does what docs/operate.md says of three hosts, word by word, on three machines with the addresses that it
// names.
func TestOperate(t *testing.T) {
	separate(t)
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	setUp := commands(string(page), "On three hosts")
	var network, workers, train string
	for _, c := range setUp {
		switch {
		case strings.HasPrefix(c, "starling network init"):
			network = c
		case strings.HasPrefix(c, "starling train"):
			train = c
		case strings.HasPrefix(c, "starling worker up"):
			workers += c + "\n"
		case strings.HasPrefix(c, "starling validator up"):
		default:
			t.Errorf("what is %q?", c)
		}
	}
	s.run(network)
	validator := s.start("starling validator up --home net/validator-0")
	validator.says("validator of")
	for home, address := range copied {
		if err := os.Rename(filepath.Join(s.dir, office[0], "net", home), filepath.Join(s.dir, address, home)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range commands(string(page), "Before a machine takes part") {
		if strings.HasPrefix(c, "starling doctor") {
			s.run(c)
		}
	}
	for c := range strings.Lines(workers) {
		p := s.start(strings.TrimSpace(c))
		p.ready()
	}
	s.job(filepath.Join(s.dir, office[0]))
	if s.run(train); t.Failed() {
		return
	}
	found, err := filepath.Glob(filepath.Join(s.dir, office[0], "*", "lineage.jsonl"))
	if err != nil || len(found) == 0 {
		found, _ = filepath.Glob(filepath.Join(s.dir, office[0], "*", "*", "lineage.jsonl"))
	}
	if len(found) != 1 {
		t.Fatalf("%d lineages", len(found))
	}
	if said, err := exec.Command(program, "job", "verify", filepath.Dir(found[0])).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, said)
	}
	for _, c := range commands(string(page), "What is going on") {
		s.run(c)
	}
	for _, p := range s.started { // the one that the page drains
		if slices.Contains(p.args, "worker-0") {
			p.end()
		}
	}
}

// commands returns the command lines of a section of a page: the indented lines that begin with the program's name.
func commands(page, section string) (list []string) {
	_, text, _ := strings.Cut(page, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if c := strings.TrimSpace(line); strings.HasPrefix(line, "    ") && strings.HasPrefix(c, "starling ") {
			list = append(list, c)
		}
	}
	return list
}

// site is three machines with a folder each.
type site struct {
	t        *testing.T
	dir      string
	machines map[string]*machine
	started  []*process
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir(), machines: map[string]*machine{}}
	for _, address := range office {
		s.machines[address] = plug(t, "h"+address[len("10.0.0."):], address)
		if err := os.Mkdir(filepath.Join(s.dir, address), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, p := range s.started {
			p.t = t
			p.kill()
		}
	})
	return s
}

// copied is where the page tells an operator to copy the folder of each participant.
var copied = map[string]string{"worker-0": office[1], "verifier-0": office[1], "worker-1": office[2],
	"verifier-1": office[2]}

var folder = regexp.MustCompile(`(^|[ =])((?:worker|verifier)-[01])\b`)

// host is where a command belongs: with the folder that it names.
func host(command string) string {
	if m := folder.FindStringSubmatch(command); m != nil {
		return copied[m[2]]
	}
	return office[0]
}

// process is a command as a process on its host.
func (s *site) process(command string) *process {
	command, _, _ = strings.Cut(command, " #") // a remark
	words := strings.Fields(command)
	at := host(command)
	return &process{t: s.t, name: strings.Join(words[:3], " "), machine: s.machines[at], dir: filepath.Join(s.dir, at),
		args: words[1:]}
}

// start starts a command that does not end by itself.
func (s *site) start(command string) *process {
	s.t.Helper()
	p := s.process(command)
	p.start(0)
	s.started = append(s.started, p)
	return p
}

// run runs a command to its end, which must be a good one.
func (s *site) run(command string) {
	s.t.Helper()
	p := s.process(command)
	p.start(0)
	p.end()
	if p.code != 0 {
		s.t.Fatalf("%s: exit code %d\n%s%s", command, p.code, p.stdout.String(), p.tail(30))
	}
	s.t.Log(command)
}

// job writes the job file that the page speaks of.
func (s *site) job(dir string) {
	path, err := writeJob()
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.NewReplacer("learning_rate:", "max_steps: 96, learning_rate:", "workers: {target: 4}",
		"sync_steps: 24, verification: {verifiers: 1}").Replace(jobFile)
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "text.jsonl"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "text.jsonl"), data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

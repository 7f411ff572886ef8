package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/run"
)

// Sizes that every network has.
const (
	validators = 4 // one may be down
	workers    = 4
	strangers  = 12 // workers, and as many verifiers, that have coins and nothing else yet
	blockTime  = 500 * time.Millisecond
)

// network is a network of processes.
type network struct {
	t          testing.TB
	dir        string   // of starling network init
	rpc        []string // HTTP interfaces of the validators
	rest       []string // the same for clients of the ecosystem
	validators []*process
	workers    []*process
	verifier   *process
	second     *process // a verifier that is not started with the others
	newcomer   *process // a worker that is not started with the others
	consumer   *process // its arguments are those of the job that runs
	all        []*process
	invited    [2]int   // verifiers and workers that break the rules, so far
	jobs       int      // so far
	set        []string // further settings of every job from now on
	units      uint32   // of a round, of which one attempt is paid each; 0: one for each of workers
	file       string   // job file of every job from now on; "": that of writeJob
	ask        string   // where the consumer asks; "": the first validator
	undo       []string // settings of undisturbed runs, by which these can be played

	chain *client.Client // to the first validator
	hang  func()

	checks []check // checks of the output folders of jobs
}

// check verifies the output folder of a job. It needs no network, and runs while later jobs run.
type check struct {
	job   string
	ended chan error
}

// check begins a check.
func (j *job) check(f func() error) {
	c := check{filepath.Base(j.out), make(chan error, 1)}
	go func() { c.ended <- f() }()
	j.checks = append(j.checks, c)
}

// newNetwork starts a network, each process on a machine of its own if separate is set. sizes maps folders to the
// size in bytes of a file system of their own. Validators take the further arguments.
func newNetwork(t testing.TB, separate bool, sizes map[string]int, validator ...string) *network {
	t.Helper()
	n := drawNetwork(t, separate, sizes)
	for _, v := range n.validators {
		v.args = append(v.args, validator...)
	}
	n.start()
	return n
}

// drawNetwork is a network of which no process is started yet.
func drawNetwork(t testing.TB, separate bool, sizes map[string]int) *network {
	t.Helper()
	n := &network{t: t, dir: filepath.Join(t.TempDir(), "net")}
	for name, size := range sizes {
		mount(t, filepath.Join(n.dir, name), size)
	}
	add := func(name string) *process {
		p := &process{t: t, name: name}
		if separate {
			p.machine = newMachine(t)
		}
		n.all = append(n.all, p)
		return p
	}
	for i := range validators {
		n.validators = append(n.validators, add(fmt.Sprintf("validator-%d", i)))
	}
	for i := range workers {
		n.workers = append(n.workers, add(fmt.Sprintf("worker-%d", i)))
	}
	n.verifier, n.consumer, n.newcomer = add("verifier-0"), add("consumer"), add(fmt.Sprintf("worker-%d", workers))
	n.newcomer.hidden, n.second = separate, add("verifier-1")
	t.Cleanup(n.stop)
	n.init()
	return n
}

// under makes a test answer for the network from now on.
func (n *network) under(t testing.TB) {
	n.t = t
	for _, p := range n.all {
		p.t = t
		if p.machine != nil {
			p.machine.t = t
		}
	}
}

// listen are the arguments that say where a process is reached.
func (p *process) listen() []string {
	switch {
	case p.machine == nil:
		return nil
	case p.hidden: // it listens on the loopback of its machine only, where no other process runs
		return []string{"--behind-nat"}
	}
	return []string{"--listen", "/ip4/" + p.machine.address + "/tcp/4001,/ip4/" + p.machine.address + "/udp/4001/quic-v1"}
}

// init makes the folders of the network, and says what its processes are.
func (n *network) init() {
	n.t.Helper()
	args := []string{"network", "init", n.dir, "--validators", fmt.Sprint(validators), "--workers",
		fmt.Sprint(workers + 1 + strangers),
		"--verifiers", fmt.Sprint(2 + strangers), "--block-time", blockTime.String(), "-o", "json"}
	if n.validators[0].machine == nil {
		args = append(args, "--port", fmt.Sprint(porttest.Ports(n.t, 10*validators)))
	} else {
		for _, v := range n.validators {
			args = append(args, "--host", v.machine.address)
		}
	}
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		n.t.Fatalf("net init: %v", err)
	}
	var made struct {
		RPC  []string `json:"rpc"`
		REST []string `json:"rest"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		n.t.Fatal(err)
	}
	n.rpc, n.rest = made.RPC, made.REST
	for _, v := range n.validators {
		v.args = []string{"validator", "up", "--home", filepath.Join(n.dir, v.name)}
	}
	for i, w := range append(n.members(), n.newcomer, n.second) {
		w.args = append([]string{"worker", "up", "--home", filepath.Join(n.dir, w.name), "--network", n.rpc[i%validators],
			"--threads", "1", "--region", fmt.Sprint("region-", i%2)}, w.listen()...)
	}
	for _, v := range []*process{n.verifier, n.second} {
		v.args = append(v.args, "--role", "verifier")
	}
	if n.verifier.machine != nil {
		n.verifier.args = append(n.verifier.args, "--relay")
	}
}

// members are those who take part in runs.
func (n *network) members() []*process { return append(slices.Clip(n.workers), n.verifier) }

// start starts every process but the consumer, and returns when all take part.
func (n *network) start() {
	n.t.Helper()
	for _, v := range n.validators {
		v.start(0)
	}
	for _, v := range n.validators {
		v.says(`validator of`)
	}
	n.watch()
	for _, w := range n.members() {
		w.start(0)
	}
	for _, w := range n.members() {
		w.ready()
	}
}

// ready waits until a worker takes part.
func (p *process) ready() {
	p.t.Helper()
	p.address = p.says(`(starling1\w+) offers`)[1]
}

// watch connects to the first validator.
func (n *network) watch() {
	n.t.Helper()
	if n.hang != nil {
		n.hang()
	}
	rpc, err := endpoint.Dial(n.rpc[0])
	if err != nil {
		n.t.Fatal(err)
	}
	n.chain = client.New(rpc, wallet.KeyFromSeed([32]byte{})) // it only listens
	n.hang = func() { n.chain.Close(); _ = rpc.Stop() }
	n.blocks("the first block", func(height int64) bool { return height > 0 })
}

// blocks waits for a block after which something is so.
func (n *network) blocks(what string, so func(height int64) bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	defer cancel()
	blocks, err := n.chain.Blocks(ctx)
	if err != nil {
		n.t.Fatalf("waiting for %s: %v", what, err)
	}
	for b := range blocks {
		if so(b.Height) {
			return
		}
	}
	n.t.Fatalf("waited %v for %s", limit, what)
}

// height is the latest block that a validator has; 0 if it cannot be asked.
func (n *network) height(v *process) int64 {
	rpc, err := endpoint.Dial(n.rpc[slices.Index(n.validators, v)])
	if err != nil {
		return 0
	}
	defer func() { _ = rpc.Stop() }()
	s, err := rpc.Status(n.t.Context())
	if err != nil {
		return 0
	}
	return s.SyncInfo.LatestBlockHeight
}

// stop ends all processes, waits for the checks, and keeps the remaining files if the test has failed and the
// environment names a folder for them.
func (n *network) stop() {
	if n.hang != nil {
		n.hang()
	}
	for _, p := range n.all {
		p.kill()
	}
	for _, c := range n.checks {
		if err := <-c.ended; err != nil {
			n.t.Errorf("%s: %v", c.job, err)
		}
	}
	keep := os.Getenv("STARLING_FAULT_KEEP")
	if !n.t.Failed() || keep == "" {
		return
	}
	if err := os.MkdirAll(filepath.Join(keep, n.t.Name()), 0o755); err != nil {
		n.t.Log(err)
	}
	if err := tool("cp", "-r %s/. %s", filepath.Dir(n.dir), filepath.Join(keep, n.t.Name())); err != nil {
		n.t.Log(err)
	}
	for _, p := range n.all {
		if err := os.WriteFile(filepath.Join(keep, n.t.Name(), p.name+".out"), []byte(p.tail(1<<30)), 0o644); err != nil {
			n.t.Log(err)
		}
	}
}

// run is the state of the run of a job; its zero before the match.
func (n *network) run(job string) run.State {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	s, err := n.chain.Training.Run(ctx, job)
	if err != nil {
		return run.State{}
	}
	return s
}

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// The local network of the test: its bridge, and the address of its head.
const (
	local     = "local"
	localHead = "10.9.0.1"
)

// behind moves a machine to a local network of which it reaches one host, the head, alone.
func behind(t testing.TB, head, m *machine) {
	t.Helper()
	head.must(ip("link add %s type bridge", local))
	head.must(ip("link set %s up", local))
	t.Cleanup(func() { head.must(ip("link delete %s", local)) })
	head.must(ip("link add %s-l type veth peer name eth1 netns %s", head.name, head.name))
	head.must(ip("link set %s-l master %s up", head.name, local))
	head.must(ip("-n %s addr add %s/24 dev eth1", head.name, localHead))
	head.must(ip("-n %s link set eth1 up", head.name))
	m.move(local)
	m.must(ip("-n %s addr flush dev eth0", m.name))
	m.must(ip("-n %s addr add 10.9.0.2/24 dev eth0", m.name))
}

// TestHead lets a machine join a fleet that reaches one host of its local network alone, and has nothing but a ticket.
// The head gives it its invitation, and passes on what it asks the validators and its connections to peers, and others
// reach it through the verifier, which relays.
func TestHead(t *testing.T) {
	separate(t)
	t.Parallel()
	n := newNetwork(t, true, nil)
	head := &process{t: t, name: "head", machine: newMachine(t)}
	behind(t, head.machine, n.newcomer.machine)
	home := filepath.Join(n.dir, "head")
	invitations := filepath.Join(n.dir, "invitations")
	if out, err := exec.Command(program, "fleet", "add", "--home", filepath.Join(n.dir, "consumer"), "--network", n.rpc[0],
		"--out", invitations).CombinedOutput(); err != nil {
		t.Fatalf("fleet add: %v\n%s", err, out)
	}
	head.args = []string{"fleet", "head", "--home", home, "--network", n.rpc[0] + "," + n.rpc[1], "--listen",
		localHead + ":7600", "--invitations", invitations}
	n.all = append(n.all, head)
	head.start(0)
	ticket := filepath.Join(home, "tickets", "machine-1")
	n.blocks("the ticket", func(int64) bool { _, err := os.Stat(ticket); return err == nil })
	args := n.newcomer.args
	for _, flag := range []string{"--network", "--behind-nat"} {
		i := slices.Index(args, flag)
		args = slices.Delete(args, i, i+map[bool]int{true: 2, false: 1}[flag == "--network"])
	}
	n.newcomer.name = "member" // and so its folder, which is empty: it has no coins
	args[slices.Index(args, "--home")+1] = filepath.Join(n.dir, n.newcomer.name)
	n.newcomer.args = append(args, "--head", ticket)
	n.set = []string{"--set", "strategy.workers.max=5"}
	n.suffer("head", 18, fault{"join_behind_a_head", n.relay})
	n.newcomer.says("works for starling1")
	head.signal(syscall.SIGINT)
	head.end()
	t.Log(head.says("passed .* to peers and .* from them")[0])
}

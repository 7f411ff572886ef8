package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// The names of the two bridges: a machine is on the first, or, while the network is parted, on either.
const (
	mainland = "mainland"
	island   = "island"
)

// hub is the address of the tests themselves, on the main network. It and the addresses of machines look public,
// because a host that only a relay reaches announces no private address.
const hub = "11.77.0.1"

// furnish makes the namespaces that the tests run in ready for machines: mounts and names of namespaces that end with
// them, and the bridges.
func furnish() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := syscall.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return errors.Join(ip("link set lo up"),
		ip("link add %s type bridge", mainland), ip("link add %s type bridge", island),
		ip("link set %s up", mainland), ip("link set %s up", island), ip("addr add %s/24 dev %s", hub, mainland))
}

func ip(format string, args ...any) error { return tool("ip", format, args...) }

func tool(name, format string, args ...any) error {
	words := strings.Fields(fmt.Sprintf(format, args...))
	if out, err := exec.Command(name, words...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(words, " "), err, out)
	}
	return nil
}

// machine is where processes run: a network namespace with a cable to the hub, or nil, for this machine.
type machine struct {
	t       testing.TB
	name    string // of its namespace, and of the hub's end of its cable
	address string // IP
}

// machines is how many were plugged in so far.
var machines atomic.Int32

// newMachine makes a machine with a number of its own, from 2, and links it to the bridge.
func newMachine(t testing.TB) *machine {
	t.Helper()
	number := machines.Add(1) + 1
	return plug(t, fmt.Sprintf("m%d", number), fmt.Sprintf("11.77.0.%d", number))
}

// plug plugs in a machine with a name and an address.
func plug(t testing.TB, name, address string) *machine {
	t.Helper()
	m := &machine{t: t, name: name, address: address}
	m.must(ip("netns add %s", m.name))
	t.Cleanup(func() { m.must(ip("netns delete %s", m.name)) })
	m.must(ip("link add %s type veth peer name eth0 netns %s", m.name, m.name))
	m.must(ip("link set %s master %s up", m.name, mainland))
	m.must(ip("-n %s addr add %s/24 dev eth0", m.name, m.address))
	m.must(ip("-n %s link set eth0 up", m.name))
	m.must(ip("-n %s link set lo up", m.name))
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// cut pulls the cable, and mend plugs it in again.
func (m *machine) cut()  { m.must(ip("link set %s down", m.name)) }
func (m *machine) mend() { m.must(ip("link set %s up", m.name)) }

// move puts the cable into one of the two bridges.
func (m *machine) move(bridge string) { m.must(ip("link set %s master %s", m.name, bridge)) }

// slow bounds what goes through the cable, both ways, to some kbit/s; 0: no bound.
func (m *machine) slow(kbit int) {
	m.t.Helper()
	for _, dev := range []string{"-n " + m.name + " qdisc %s dev eth0 root", "qdisc %s dev " + m.name + " root"} {
		if kbit == 0 {
			m.must(tool("tc", dev, "delete"))
			continue
		}
		m.must(tool("tc", dev+" tbf rate %dkbit burst 16kb latency 200ms", "add", kbit))
	}
}

// sent is how many bytes have left the machine through its cable.
func (m *machine) sent() int64 {
	m.t.Helper()
	out, err := exec.Command("ip", "-s", "-j", "link", "show", m.name).Output()
	m.must(err)
	var ends []struct {
		Stats64 struct{ RX struct{ Bytes int64 } } // of the hub's end
	}
	if m.must(json.Unmarshal(out, &ends)); len(ends) != 1 {
		m.t.Fatalf("the cable of %s has the ends %s", m.name, out)
	}
	return ends[0].Stats64.RX.Bytes
}

// lossy delays packets and loses some, both ways.
func (m *machine) lossy(delay string, percent int) {
	m.t.Helper()
	m.must(tool("tc", "-n %s qdisc add dev eth0 root netem delay %s loss %d%%", m.name, delay, percent))
	m.must(tool("tc", "qdisc add dev %s root netem delay %s loss %d%%", m.name, delay, percent))
}

// emulates is why the kernel cannot delay or lose packets (sch_netem); nil if it can.
func emulates() error {
	if err := tool("tc", "qdisc add dev lo root netem delay 1ms"); err != nil {
		return err
	}
	return tool("tc", "qdisc delete dev lo root")
}

// command is a command line that runs there.
func (m *machine) command(words ...string) *exec.Cmd {
	if m != nil {
		words = append([]string{"ip", "netns", "exec", m.name}, words...)
	}
	return exec.Command(words[0], words[1:]...)
}

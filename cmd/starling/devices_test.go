package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/internal/porttest"
)

// Two devices of a machine are two workers of one owner by one command, and drain together. The others of the network
// offer to train and to verify, and none is a verifier alone: one of them has the seat that neither device may have.
// The job ends with the model of the job alone.
func TestTwoDevicesOfAMachine(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, ""), t.TempDir()
	host := filepath.Join(dir, "host")
	names := []string{"opencl-0", "opencl-1"}
	env := withDevice(t, filepath.Join(host, names[0]), filepath.Join(host, names[1]))
	if env == nil {
		t.Skip("this machine has no driver of OpenCL that computes on the processor")
	}
	env = append(env, "POCL_DEVICES=pthread pthread") // two devices of it
	set := []string{"--set", "strategy.verification.verifiers=1"}
	code, stdout, stderr := starling(t, append([]string{"train", job, "--dir", filepath.Join(dir, "alone"), "-o", "json"},
		set...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	alone := summary(t, stdout)

	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	network := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	does(t, &struct{}{}, "network", "init", net, "--workers", "2", "--block-time", "500ms", "--port", fmt.Sprint(port))
	said(t, command(t, "validator", "up", "--home", filepath.Join(net, "validator-0")))("for everybody")
	for _, name := range []string{"worker-0", "worker-1"} {
		said(t, command(t, "worker", "up", "--home", filepath.Join(net, name), "--network", network, "--role",
			"worker,verifier", "--measure=false"))("offers its work")
	}
	wallet, consumer := filepath.Join(dir, "wallet"), filepath.Join(net, "consumer")
	owner := fund(t, network, consumer, wallet, "300")
	invitations := filepath.Join(dir, "invitations")
	does(t, &struct{}{}, "fleet", "add", "--home", wallet, "--network", network, "--machines", "2", "--stake", "50",
		"--out", invitations)
	fleet := command(t, "fleet", "up", "--home", host, "--devices", "opencl:0,opencl:1", "--invitations", invitations)
	fleet.Env = append(fleet.Env, env...)
	until := said(t, fleet)
	t.Cleanup(func() { _ = fleet.Process.Signal(syscall.SIGTERM) }) // the second ends them at once
	until("opencl-[01]: .*offers its work")
	until("opencl-[01]: .*offers its work")

	train := command(t, append([]string{"train", job, "--dir", filepath.Join(dir, "out"), "-o", "table", "--network",
		network, "--home", consumer}, set...)...)
	var result bytes.Buffer
	train.Stdout = &result
	if err := train.Run(); err != nil || !strings.Contains(result.String(), alone.StateRoot.String()) {
		t.Fatalf("%v\n%s\nwanted the state root %s", err, result.String(), alone.StateRoot)
	}
	devicesWorked(t, host, owner, network, names)
	does(t, &struct{}{}, "fleet", "drain", "--host", host)
	if err := fleet.Wait(); err != nil {
		t.Errorf("drained: %v", err)
	}
}

// devicesWorked checks that each worker of a host has its own device, which computed, and that its owner was paid.
func devicesWorked(t *testing.T, host, owner, network string, names []string) {
	t.Helper()
	var on struct {
		Workers []struct {
			Name, Device, Machine string
			Running               bool
		}
	}
	does(t, &on, "fleet", "status", host)
	var machines struct {
		Machines []struct {
			Machine string
			Earned  uint64 `json:"earned_uzen"`
		}
	}
	does(t, &machines, "fleet", "list", "--owner", owner, "--network", network)
	earned := map[string]uint64{}
	for _, m := range machines.Machines {
		earned[m.Machine] = m.Earned
	}
	if len(on.Workers) != len(names) || len(earned) != len(names) {
		t.Fatalf("%+v, %+v", on, machines)
	}
	for i, w := range on.Workers {
		var worker struct {
			Process struct {
				Device struct {
					Units  int
					Failed int `json:"failed_units"`
				}
			}
		}
		does(t, &worker, "worker", "status", "--home", filepath.Join(host, w.Name))
		if d := worker.Process.Device; w.Name != names[i] || w.Device != fmt.Sprintf("opencl:%d", i) || !w.Running ||
			earned[w.Machine] == 0 || d.Units == 0 || d.Failed > 0 {
			t.Errorf("%+v with %+v; the account sees %+v", w, d, machines)
		}
	}
}

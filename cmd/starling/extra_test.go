package main

import (
	"context"
	"os/exec"
	"syscall"

	"github.com/starling-network/starling/cmd/starling/hosted"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/busy"
)

// besides is a process that verifies, judges contests and hosts a model.
type besides struct {
	*ledger
	name string
	*exec.Cmd
	until func(string)
}

// besides starts one of a registered verifier.
func (l *ledger) besides(name, folder string) *besides {
	l.t.Helper()
	p := command(l.t, l.as(name, "worker", "up", "--role", "verifier,judge,host", "--judge-bond", "2", "--judge-private",
		"--host", folder, "--host-price-in", "0.1", "--host-price-out", "0.5", "--host-bond", "5", "--host-listen",
		porttest.Address(l.t), "--measure=false", "--memory", "2000")...)
	b := &besides{l, name, p, said(l.t, p)}
	b.until("evaluates contests, with a bond of 2.00 ZEN|is hosted at")
	b.until("evaluates contests, with a bond of 2.00 ZEN|is hosted at")
	return b
}

// hosts checks that the process answers requests, none in a pause, and says for how much of its time it computed.
func (b *besides) hosts(payer string) {
	b.t.Helper()
	home, on := b.home(b.name), []string{"--home", b.home(payer), "--network", b.network}
	ask := append([]string{"model", "ask", "1", "the quick", "--tokens", "8", "--temperature", "0", "--budget", "1",
		"--private"}, on...)
	var reply hosted.Reply
	does(b.t, &reply, ask...)
	if reply.Cost == "0.00" {
		b.t.Errorf("%+v", reply)
	}
	does(b.t, &struct{}{}, "worker", "pause", "--home", home)
	b.refuses(8, "providers_failed", ask...)
	b.blocks(b.retired)
	does(b.t, &struct{}{}, "worker", "resume", "--home", home)
	b.until("evaluates contests, with a bond of 2.00 ZEN")
	does(b.t, &reply, ask...)
	var status struct {
		Process struct {
			Role  string
			Busy  []busy.Share
			Share float64 `json:"busy_share"`
		}
	}
	does(b.t, &status, "worker", "status", "--home", home, "--network", b.network)
	p, of := status.Process, map[busy.Class]float64{}
	for _, s := range p.Busy {
		of[s.Class] = s.Share
	}
	if p.Role != "verifier, judge of contests and host of a model" || of[busy.Evaluation] == 0 || of[busy.Hosting] == 0 ||
		p.Share < of[busy.Evaluation] || p.Share > 1 {
		b.t.Errorf("%+v", p)
	}
}

// retired reports whether the account evaluates no contests, and has its bond.
func (b *besides) retired(ctx context.Context) bool {
	e, err := arena.Standing(ctx, b.clients["consumer"].Arena, b.clients[b.name].Address())
	return err == nil && e.Account == ""
}

// drains checks that the process ends after a signal, with the bond of its account returned.
func (b *besides) drains() {
	b.t.Helper()
	b.must(b.Process.Signal(syscall.SIGINT))
	b.must(b.Wait())
	b.blocks(b.retired)
}

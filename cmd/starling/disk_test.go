package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/plan"
)

// TestDiskTooSmall: a plan and a start refuse a job by the same error. It names the bytes that are needed, those that
// may be filled, and a way out.
func TestDiskTooSmall(t *testing.T) {
	const need, free = 900_000_000_000, 1000
	j := jobtest.Small(t)
	planned := quote.Fits(j, "job.yaml", "", &plan.Plan{Disk: need, FreeDisk: free,
		Placement: &api.Placement{Fits: "unknown"}})
	started := quote.DiskTooSmall(j, "job.yaml", "", &member.ShortageError{Need: need, Free: free})
	var a, b *terminal.Problem
	if !errors.As(planned, &a) || !errors.As(started, &b) || *a != *b || a.Code != "STORE_TOO_SMALL" {
		t.Fatalf("planned %+v, started %+v", a, b)
	}
	for _, part := range []string{terminal.Bytes(need), terminal.Bytes(free), "90% of the free disk", "--dir"} {
		if !strings.Contains(a.Why+a.Fix, part) {
			t.Errorf("%q is not in %+v", part, a)
		}
	}
	small := &plan.Plan{Disk: 1, FreeDisk: 1, Placement: &api.Placement{Fits: "yes"}}
	if err := quote.Fits(j, "job.yaml", "", small); err != nil {
		t.Errorf("a job that fits: %v", err)
	}
}

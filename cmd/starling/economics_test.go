package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/network"
)

func TestEconomics(t *testing.T) {
	for _, c := range []struct {
		rate, steps, cheat string
		detection          float64
		pays               bool
	}{
		{"0.01", "100", "1", 0.634, false},
		{"1%", "100", "100%", 0.634, false},
		{"0.05", "100", "1", 0.994, false},
		{"5%", "1", "1", 0.05, true},
		{"0", "10", "1", 0, true},
	} {
		code, stdout, stderr := starling(t, "network", "economics", "--stake", "2.5", "--reward", "1.3", "--cost", "1",
			"--audit-rate", c.rate, "--steps", c.steps, "--cheat-fraction", c.cheat, "-o", "json")
		var e network.Economics
		if err := json.Unmarshal([]byte(stdout), &e); code != 0 || err != nil {
			t.Fatalf("exit %d: %v\n%s%s", code, err, stdout, stderr)
		}
		if math.Abs(e.DetectionProbability-c.detection) > 0.0005 || e.CheatingPays != c.pays ||
			e.CheatingPays != (e.ExpectedGain > 0) {
			t.Errorf("rate %s, %s steps: %s", c.rate, c.steps, stdout)
		}
		if (e.StakeNeeded == nil) != (c.rate == "0") {
			t.Errorf("rate %s: %s", c.rate, stdout)
		}
		if e.StakeNeeded != nil && *e.StakeToPost != 2**e.StakeNeeded {
			t.Errorf("a conviction takes half of the stake: %s", stdout)
		}
	}
}

func TestEconomicsRefusesNonsense(t *testing.T) {
	for _, args := range []string{
		"--stake -1 --reward 1 --cost 1 --audit-rate 0.1",
		"--stake 1 --reward 1 --cost 1 --audit-rate 1.1",
		"--stake 1 --reward 1 --cost 1 --audit-rate 101%",
		"--stake 1 --reward 1 --cost 1",
		"--stake . --reward 1 --cost 1 --audit-rate 0.1",
		"--stake 1 --reward 1 --cost 0.0000001 --audit-rate 0.1",
		"--stake 1 --reward 1 --cost 1e3 --audit-rate 0.1",
		"--stake 1 --reward 1 --cost 1 --audit-rate 0.1 --steps 0",
		"--stake 99999999999999 --reward 1 --cost 1 --audit-rate 0.1",
	} {
		if code, stdout, stderr := starling(t, append([]string{"network", "economics"},
			strings.Fields(args)...)...); code != 2 || stdout != "" || !strings.Contains(stderr, "USAGE") {
			t.Errorf("%s: exit %d, %q, %s", args, code, stdout, stderr)
		}
	}
}

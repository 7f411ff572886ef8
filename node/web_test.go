package node

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web"
)

// The dashboard shows a run and its network while it runs, and no longer after its end.
func TestDashboardOfARun(t *testing.T) {
	t.Parallel()
	var url string
	get := func(path string, into any) {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err == nil && into != nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %d %v %.300s", path, answer.StatusCode, err, text)
		}
	}
	var j api.Job
	var live *dashboard.LiveRun
	look := sync.OnceFunc(func() {
		var n api.Network
		var b api.Blocks
		var m api.Metrics
		get("/v1/jobs/out", &j)
		get("/v1/jobs/out/metrics", &m)
		get("/v1/jobs/out/receipts", nil)
		var members api.Members
		if get("/v1/jobs/out/workers", &members); len(members.Links) == 0 || members.Links[0].Bytes == 0 {
			t.Errorf("who fetched from whom: %+v", members.Links)
		}
		get("/v1/network", &n)
		get("/v1/blocks?limit=100", &b)
		var busy api.Blocks
		if get("/v1/blocks?limit=1&busy=true", &busy); len(busy.Blocks) != 1 || len(busy.Blocks[0].Txs) == 0 ||
			!busy.HasMore {
			t.Errorf("blocks with transactions: %+v", busy)
		}
		if len(n.Participants) != 4 || len(n.Runs) != 1 || len(b.Blocks) == 0 ||
			b.Blocks[0].Height < b.Blocks[len(b.Blocks)-1].Height || len(m.Series) == 0 {
			t.Errorf("%+v\n%d blocks, %d series", n, len(b.Blocks), len(m.Series))
		}
		for _, x := range b.Blocks {
			for _, tx := range x.Txs {
				var again api.Tx
				get("/v1/txs/"+tx.Hash, &again) // they are so few that it is among the latest
				if len(tx.Messages) == 0 || len(tx.Signers) == 0 || again.Height != x.Height {
					t.Errorf("%+v, by its hash %+v", tx, again)
				}
			}
		}
		var a api.Account
		get("/v1/accounts/"+n.Participants[0].ID, &a)
		if a.Stake == 0 || len(a.Reasons) == 0 {
			t.Errorf("%+v", a)
		}
		checkChainRuns(t, &dashboard.ChainRuns{View: live.View}, j)
	})
	dir := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, consumer.Options{Job: jobtest.Small(t), Dir: dir, Web: "127.0.0.1:0",
		Shown: func(l runs.Live) { live = l.(*dashboard.LiveRun) },
		Say: func(text string) {
			if at, ok := strings.CutPrefix(text, "dashboard: "); ok {
				url = at
			}
		},
		Progress: func(p consumer.Progress) {
			if p.Round > 0 {
				look()
			}
		}})
	if j.State != "running" || j.Rounds != s.Rounds || j.Workers != s.Workers {
		t.Errorf("%+v", j)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the run is over, and its dashboard is not")
	}
}

// checkChainRuns asks the chain of an open run for its jobs, as the command line does.
func checkChainRuns(t *testing.T, all *dashboard.ChainRuns, run api.Job) {
	t.Helper()
	ctx := t.Context()
	c := rest.Of(web.New(web.Config{Runs: all}))
	jobs, err := c.Jobs(ctx, "running", "network")
	if err != nil || len(jobs) != 1 {
		t.Errorf("jobs of the network: %v, %v", jobs, err)
		return
	}
	j, err := c.Find(ctx, jobs[0].ID[:len(jobs[0].ID)-2])
	if err != nil || j.Rounds != run.Rounds || j.Workers != run.Workers || j.BudgetUzen != run.BudgetUzen ||
		j.Round < 1 || j.StateRoot == "" || j.Reason == nil {
		t.Errorf("%+v, %v, want what is in %+v", j, err, run)
	}
	lineage, err := c.Lineage(ctx, j.ID)
	if err != nil || len(lineage) < j.Round || lineage[j.Round-1].StateRoot != j.StateRoot ||
		len(lineage[0].Signers) == 0 {
		t.Errorf("%d checkpoints, %v", len(lineage), err)
	}
	if x, err := c.Cost(ctx, j.ID); err != nil || x.BudgetUzen != x.PaidUzen+x.FeeUzen+x.RefundedUzen+x.RemainingUzen {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := c.Log(ctx, j.ID, -1); err == nil || !strings.Contains(err.Error(), "digests only") {
		t.Errorf("a log on the chain: %v", err)
	}
	if _, err := c.Find(ctx, "job-0"); err == nil {
		t.Error("a job that nobody ordered is found")
	}
}

package node

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/api"
)

// A run is shown while it goes on, with its network, and no more when it is over.
func TestDashboardOfARun(t *testing.T) {
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
	look := sync.OnceFunc(func() {
		var n api.Network
		var b api.Blocks
		var m api.Metrics
		get("/v1/jobs/out", &j)
		get("/v1/jobs/out/metrics", &m)
		get("/v1/jobs/out/receipts", nil)
		get("/v1/network", &n)
		get("/v1/blocks?limit=100", &b)
		if len(n.Participants) != 4 || len(n.Runs) != 1 || len(b.Blocks) == 0 || b.Blocks[0].Height < b.Blocks[len(b.Blocks)-1].Height || len(m.Series) == 0 {
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
	})
	dir := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, TrainOptions{Job: smallJob(t), Dir: dir, Web: "127.0.0.1:0",
		Say: func(text string) {
			if at, ok := strings.CutPrefix(text, "dashboard: "); ok {
				url = at
			}
		},
		Progress: func(p Progress) {
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

func TestStrangersNeedTokens(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.7:0", "example.org:0"} {
		if err := ServeWeb(t.Context(), t.TempDir(), WebOptions{Listen: listen}); !errors.Is(err, ErrOpenToAll) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

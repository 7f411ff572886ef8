package arena

import (
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/protocol/arena"
)

// reported lets the evaluator judge until half of the phase is past, and returns its report.
func (c *contest) reported() arena.Report {
	c.t.Helper()
	c.height = 60
	c.must(c.judge().Block(c.t.Context(), market{c}, c.height))
	if c.seals != 1 {
		c.t.Fatalf("%d seals", c.seals)
	}
	c.open()
	c.must(c.judge().Block(c.t.Context(), market{c}, c.height))
	return *c.Opinions[0].Report
}

// A host that takes its base away accuses no entry: the contest is without its set. Models tuned from the base would be
// copies of the first one, which may be the host's.
func TestBaseIsGone(t *testing.T) {
	for name, url := range map[string]string{"away": "/nowhere", "another": "/first"} {
		c := begin(t)
		c.enter(c.write("first", 1, 8))
		c.Terms.Base, c.Terms.BaseURL = canon.Sum("base"), c.url+url
		if r := c.reported(); !r.Absent {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A model of a few megabytes whose vocabulary would take the memory of an evaluator by the scores of its tokens is no
// model of the contest, however little memory is free: it neither stops an evaluator nor keeps it from its report.
func TestVocabulariesThatFillTheMemory(t *testing.T) {
	c := begin(t)
	most := c.Terms.MaxVocab()
	c.enter(c.writeOf(most, "padded", 1, 8))
	c.enter(c.writeOf(most+1, "large", 2, 8))
	r := c.reported()
	if r.Entries[0].Status != arena.Placed || r.Entries[1].Status != arena.Invalid {
		t.Errorf("%+v", r.Entries)
	}
	set, err := SetOf(c.dir, c.Terms.Set)
	c.must(err)
	if _, err := ScoreModel(t.Context(), set, filepath.Join(c.dir, "large"), 1, nil); err == nil {
		t.Error("a model that cannot enter has a score")
	}
}

// A file with no bytes is in no list: it would have no limit.
func TestListsOfEmptyFiles(t *testing.T) {
	c := begin(t)
	list := files.List{Files: []files.File{{Name: "config.json", Bytes: 2, Sum: sha256.Sum256([]byte("{}"))},
		{Name: "model.safetensors"}}}
	asked := false
	c.mux.HandleFunc("GET /liar/config.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	})
	c.mux.HandleFunc("GET /liar/"+files.NameList, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(list.Encode())
	})
	c.mux.HandleFunc("GET /liar/model.safetensors", func(http.ResponseWriter, *http.Request) { asked = true })
	c.All = append(c.All, arena.Entry{Number: 1, Account: "liar", Model: list.Digest(), URL: c.url + "/liar"})
	if r := c.reported(); asked || r.Entries[0].Status != arena.Absent {
		t.Errorf("asked %v, %+v", asked, r)
	}
}

// An entry whose server sends nothing keeps no other from being evaluated, and no evaluator from its seal.
func TestSlowServers(t *testing.T) {
	c := begin(t)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	c.mux.HandleFunc("/slow/", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	c.All = append(c.All, arena.Entry{Number: 1, Account: "slow", Model: canon.Sum("x"), URL: c.url + "/slow"})
	c.Entries++
	c.enter(c.write("second", 2, 8))
	j := c.judge()
	j.began, j.height = time.Now().Add(-time.Second), 0 // blocks of a tenth of a second
	c.must(j.Block(t.Context(), market{c}, 10))
	if _, err := os.Stat(filepath.Join(j.Dir, "1", "losses-2.cbor")); err != nil || c.seals > 0 {
		t.Errorf("the second one waits for the first: %v, %d seals", err, c.seals)
	}
	c.must(j.Block(t.Context(), market{c}, 60))
	if c.seals != 1 {
		t.Errorf("%d seals", c.seals)
	}
}

// Files of a contest whose panel the account is no longer in are removed.
func TestFilesOfEarlierPanels(t *testing.T) {
	c := begin(t)
	c.enter(c.write("first", 1, 8))
	c.height = 60
	c.must(c.judge().Block(t.Context(), market{c}, c.height))
	dir := filepath.Join(c.dir, "judge", "1")
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	c.Panel = []string{"other", "third", "fourth"}
	c.must(c.judge().Block(t.Context(), market{c}, c.height))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("they stay")
	}
}

// A first entry with the layers of another model, and a loss that is too large for a place, does not make the other a
// copy.
func TestUselessEntriesAccuseNone(t *testing.T) {
	for worst, want := range map[uint64]arena.Status{0: arena.Copy, 4_000_000: arena.Placed} {
		c := begin(t)
		c.Terms.Worst = worst
		c.enter(c.write("useless", 1, 8, func(w map[string]*tensor.Tensor) {
			for i := range w["transformer.ln_f.weight"].F32() {
				w["transformer.ln_f.weight"].F32()[i] = 1000
			}
		}))
		c.enter(c.write("second", 1, 8))
		if r := c.reported(); r.Entries[1].Status != want {
			t.Errorf("%d: %+v", worst, r)
		}
	}
}

// An entry is compared with samples of the earlier ones: their files are read once, and not again for each later entry.
// With 64 entries that would be two thousand models.
func TestEarlierEntriesAreReadOnce(t *testing.T) {
	c := begin(t)
	c.enter(c.write("first", 1, 8))
	c.enter(c.write("second", 2, 8))
	c.enter(c.write("same", 1, 8, func(w map[string]*tensor.Tensor) {
		for i := range w["transformer.ln_f.bias"].F32() {
			w["transformer.ln_f.bias"].F32()[i] = float32(i % 3)
		}
	}))
	c.All = append(c.All, arena.Entry{Number: 4, Account: "away", Model: canon.Sum("x"), URL: c.url + "/away"})
	c.Entries++
	c.height = 10
	j := c.judge()
	c.must(j.Block(t.Context(), market{c}, c.height)) // the last one may still come
	c.must(os.RemoveAll(filepath.Join(j.Dir, "1", dirModels, "1")))
	c.All[0].URL = c.url + "/away"
	if r := c.reported(); r.Entries[0].Status != arena.Placed || r.Entries[1].Status != arena.Placed ||
		r.Entries[2].Status != arena.Copy || r.Entries[2].Of != 1 {
		t.Errorf("%+v", r)
	}
}

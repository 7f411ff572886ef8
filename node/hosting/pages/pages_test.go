package pages

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/internal/hostingtest"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// town is a network with a data set of three pages, its sellers, and a buyer.
type town struct {
	t       *testing.T
	network *hostingtest.Network
	dir     string
	m       Manifest
	redeem  []*nodehosting.Redeemer
}

func begin(t *testing.T) *town {
	t.Helper()
	n := &town{t: t, network: hostingtest.New(), dir: t.TempDir()}
	for name, size := range map[string]int{"a.txt": 5000, "deep/b.txt": 5000, ".hidden": 10, "empty": 0} {
		path := filepath.Join(n.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte(name), size/len(name)+1)[:size], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if n.m, err = Describe(t.Context(), n.dir, MinPage); err != nil || n.m.Pages() != 3 || len(n.m.Files) != 2 {
		t.Fatalf("%+v, %v", n.m.Files, err)
	}
	n.network.Model.Files, n.network.Model.Weights = n.m.Names()
	return n
}

// sell starts a seller at a price in grains of a page; between may change its answers.
func (n *town) sell(name string, price uint64, between func(http.Handler) http.Handler) {
	n.t.Helper()
	v, err := nodehosting.OpenVouchers(filepath.Join(n.t.TempDir(), name), hostingtest.Chain)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = v.Close() })
	r := &nodehosting.Redeemer{Network: n.network.As(name), Provider: name, Model: 7, Vouchers: v, Least: 1,
		Log: slog.New(slog.DiscardHandler)}
	n.redeem = append(n.redeem, r)
	place := hosting.Place{Model: 7, Provider: name, Bond: 5, Prices: hosting.Prices{Output: price * 1_000_000}}
	root, err := os.OpenRoot(n.dir)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = root.Close() })
	handler := NewSeller(n.m, root, Terms{Chain: hostingtest.Chain, Place: place}, v, r.Look).Handler()
	if between != nil {
		handler = between(handler)
	}
	server := httptest.NewServer(handler)
	n.t.Cleanup(server.Close)
	place.URL = server.URL
	n.network.Host(place)
}

func (n *town) buyer(budget uint64) *Buyer {
	n.t.Helper()
	p, err := purse.Open(n.t.Context(), purse.Config{Dir: n.t.TempDir(), Chain: hostingtest.Chain, Account: "payer",
		Network: n.network.As("payer"), Budget: budget})
	if err != nil {
		n.t.Fatal(err)
	}
	places, err := n.network.As("payer").Places(n.t.Context(), 7)
	if err != nil {
		n.t.Fatal(err)
	}
	return &Buyer{Chain: hostingtest.Chain, Model: n.network.Model, Places: places, Client: x402.NewClient(true), Purse: p}
}

func (n *town) fetch(b *Buyer, to string, pages ...int) (Counts, error) {
	m, err := b.Manifest(n.t.Context())
	if err != nil {
		return Counts{}, err
	}
	return b.Fetch(n.t.Context(), m, pages, to, func(int, int) {})
}

// same compares the files of a folder with those of the seller.
func (n *town) same(dir string) {
	n.t.Helper()
	for _, f := range n.m.Files {
		have, err := os.ReadFile(filepath.Join(dir, f.Name))
		want, err2 := os.ReadFile(filepath.Join(n.dir, f.Name))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(have, want) {
			n.t.Errorf("%s is another: %v", f.Name, err)
		}
	}
}

// A reader pays the cheapest seller for each page, once, and the holders of shares have their part.
func TestPagesArePaidOnce(t *testing.T) {
	n := begin(t)
	n.sell("dear", 50, nil)
	n.sell("cheap", 20, nil)
	b, to := n.buyer(1000), t.TempDir()
	if c, err := n.fetch(b, to, 1); err != nil || c != (Counts{Pages: 1, Bytes: MinPage, Spent: 20}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := n.fetch(b, to, 0, 1, 2); err != nil || c.Pages != 2 || c.Present != 1 || c.Spent != 40 {
		t.Errorf("%+v, %v", c, err)
	}
	n.same(to)
	for _, r := range n.redeem {
		r.Finish(t.Context())
	}
	// a fee of 5 %, then a tenth for the shares
	for who, want := range map[string]int64{"": 3, "shares": 5, "cheap": 52, "dear": 0} {
		if got := n.network.Coins(who); got != want {
			t.Errorf("%q has %d, wanted %d", who, got, want)
		}
	}
}

// A request that is not paid gets status 402 and the terms; the manifest is free.
func TestTerms(t *testing.T) {
	n := begin(t)
	n.sell("a", 20, nil)
	b := n.buyer(1000)
	for path, want := range map[string]int{"/v1/pages": 200, "/v1/pages/0": 402, "/v1/pages/3": 404, "/v1/pages/x": 404} {
		reply, err := b.get(t.Context(), b.Places[0], path, "")
		if err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode != want {
			t.Errorf("%s: status %d", path, reply.StatusCode)
		}
		if want == 402 {
			if _, terms, err := x402.ReadRequired(reply.Body, hostingtest.Chain); err != nil || terms.Extra.Most != 20 {
				t.Errorf("%+v, %v", terms, err)
			}
		}
		_ = reply.Body.Close()
	}
}

// replaces changes the pages, the terms or the settlements of a seller.
func replaces(header func(http.Header), change func(status int, body []byte) []byte) func(http.Handler) http.Handler {
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			inner.ServeHTTP(recorded, r)
			header(recorded.Header())
			for name, list := range recorded.Header() {
				w.Header()[name] = list
			}
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(change(recorded.Code, recorded.Body.Bytes()))
		})
	}
}

// A seller of other bytes, of a longer page or of another manifest, one that asks for more than its place says, and one
// that charges more is not asked again, and costs one page at most; the reader gets the files from another.
func TestDishonestSellers(t *testing.T) {
	keep := func(_ int, body []byte) []byte { return body }
	for name, c := range map[string]struct {
		between func(http.Handler) http.Handler
		lost    uint64
	}{
		"other bytes": {replaces(func(http.Header) {}, func(status int, body []byte) []byte {
			if status == 200 && len(body) == MinPage {
				body[7] ^= 1
			}
			return body
		}), 10},
		"a longer page": {replaces(func(h http.Header) { h.Del("Content-Length") }, func(status int, body []byte) []byte {
			if status == 200 && len(body) == MinPage {
				body = append(body, 0)
			}
			return body
		}), 10},
		"another manifest": {replaces(func(http.Header) {}, func(status int, body []byte) []byte {
			if len(body) != MinPage {
				body[len(body)-1] ^= 1
			}
			return body
		}), 0},
		"more than its place says": {replaces(func(http.Header) {}, func(status int, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"most":"10"`), []byte(`"most":"11"`))
		}), 0},
		"another account": {replaces(func(http.Header) {}, func(status int, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"payTo":"liar"`), []byte(`"payTo":"twin"`))
		}), 0},
		"a larger cost": {replaces(func(h http.Header) {
			if h.Get(x402.HeaderResponse) != "" {
				h.Set(x402.HeaderResponse, x402.Settlement{Success: true, Cost: 11}.Header())
			}
		}, keep), 10},
		"no settlement": {replaces(func(h http.Header) { h.Del(x402.HeaderResponse) }, keep), 10},
	} {
		n := begin(t)
		n.sell("liar", 10, c.between)
		n.sell("honest", 20, nil)
		to := t.TempDir()
		counts, err := n.fetch(n.buyer(1000), to, 0, 1, 2)
		if err != nil || counts.Spent != 60+c.lost {
			t.Errorf("%s: %+v, %v", name, counts, err)
			continue
		}
		n.same(to)
	}
}

// Without a provider, beyond the budget, of a page that does not exist, and of a file that changed, nothing is bought.
func TestNothingIsBought(t *testing.T) {
	n := begin(t)
	if _, err := n.fetch(n.buyer(1000), t.TempDir(), 0); !errors.Is(err, ErrNone) {
		t.Errorf("without a provider: %v", err)
	}
	n.sell("a", 20, nil)
	if _, err := n.fetch(n.buyer(10), t.TempDir(), 0); !errors.Is(err, purse.ErrBudget) {
		t.Errorf("beyond the budget: %v", err)
	}
	if _, err := n.fetch(n.buyer(1000), t.TempDir(), 3); !errors.Is(err, ErrPage) {
		t.Errorf("a page that does not exist: %v", err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "a.txt"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := n.fetch(n.buyer(1000), t.TempDir(), 0); err == nil || c.Spent != 0 {
		t.Errorf("a file that changed: %+v, %v", c, err)
	}
	if _, err := Describe(context.Background(), t.TempDir(), MinPage); !errors.Is(err, ErrFolder) {
		t.Errorf("an empty folder: %v", err)
	}
}

// Bytes of strangers that are no manifest are refused, and no name of a file leaves a folder.
func FuzzDecode(f *testing.F) {
	m := Manifest{Page: MinPage, Files: []File{{"a", 3}, {"b/c", 5}}, Digests: make([]byte, 32)}
	f.Add(m.Encode())
	m.Files[0].Name = "../a"
	f.Add(m.Encode())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		if string(m.Encode()) != string(data) {
			t.Error("another encoding of the same manifest")
		}
		total := uint64(0)
		for page := range min(m.Pages(), 100) {
			size := 0
			for _, s := range m.spans(page) {
				if !filepath.IsLocal(s.file) {
					t.Fatalf("the file %q", s.file)
				}
				size += s.n
			}
			if size != m.Size(page) {
				t.Fatalf("page %d has %d bytes, and its parts %d", page, m.Size(page), size)
			}
			total += uint64(size)
		}
		if m.Pages() <= 100 && total != m.Bytes() {
			t.Fatalf("pages of %d bytes, files of %d", total, m.Bytes())
		}
	})
}

package pushtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	dsync "github.com/ipfs/go-datastore/sync"
	format "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
)

// PinToken is that of the one account of a PinService.
const PinToken = "pin-0123456789"

// PinService is a pinning service of IPFS, made of boxo's parts: it fetches by Bitswap from the origins of a request.
type PinService struct {
	URL  string
	Full bool // the account may pin no more

	host   host.Host
	blocks blockstore.Blockstore
	ctx    context.Context
	dag    format.DAGService

	mu   sync.Mutex
	pins map[string]*pinned // by request
}

type pinned struct {
	cid    cid.Cid
	status string
	name   string
}

// NewPinService starts a service, and sets the environment of its clients.
func NewPinService(t testing.TB) *PinService {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &PinService{host: h, ctx: ctx, pins: map[string]*pinned{},
		blocks: blockstore.NewBlockstore(dsync.MutexWrap(datastore.NewMapDatastore()))}
	exchange := bitswap.New(ctx, bsnet.NewFromIpfsHost(h), nil, s.blocks)
	s.dag = merkledag.NewDAGService(blockservice.New(s.blocks, exchange))
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		_ = exchange.Close()
		cancel()
		_ = h.Close()
	})
	s.URL = server.URL + "/psa"
	t.Setenv("IPFS_PINNING_ENDPOINT", s.URL)
	t.Setenv("IPFS_PINNING_TOKEN", PinToken)
	return s
}

// Pinned reports the name under which the service keeps a folder, all of whose blocks it has.
func (s *PinService) Pinned(text string) (name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pins {
		if p.cid.String() == text && p.status == "pinned" {
			return p.name, true
		}
	}
	return "", false
}

// Requests is the number of pins that were asked for.
func (s *PinService) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pins)
}

// ServeHTTP implements http.Handler.
func (s *PinService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	no := func(status int, reason string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"reason":%q,"details":"see the documentation"}}`, reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, one := strings.CutPrefix(r.URL.Path, "/psa/pins/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+PinToken:
		no(http.StatusUnauthorized, "UNAUTHORIZED")
	case r.Method == http.MethodGet && r.URL.Path == "/psa/pins":
		count := 0
		for _, p := range s.pins {
			if p.cid.String() == r.URL.Query().Get("cid") && p.status == r.URL.Query().Get("status") {
				count++
			}
		}
		fmt.Fprintf(w, `{"count":%d,"results":[]}`, count)
	case r.Method == http.MethodPost && r.URL.Path == "/psa/pins" && s.Full:
		no(http.StatusConflict, "INSUFFICIENT_FUNDS")
	case r.Method == http.MethodPost && r.URL.Path == "/psa/pins":
		s.add(w, r, no)
	case r.Method == http.MethodGet && one && s.pins[id] != nil:
		s.answer(w, http.StatusOK, id)
	default:
		no(http.StatusNotFound, "NOT_FOUND")
	}
}

func (s *PinService) add(w http.ResponseWriter, r *http.Request, no func(int, string)) {
	var asked struct {
		CID     string   `json:"cid"`
		Name    string   `json:"name"`
		Origins []string `json:"origins"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&asked)
	root, wrong := cid.Decode(asked.CID)
	if err != nil || wrong != nil || len(asked.Origins) == 0 || len(asked.Origins) > 20 {
		no(http.StatusBadRequest, "BAD_REQUEST")
		return
	}
	id := fmt.Sprintf("request %d", len(s.pins))
	p := &pinned{root, "queued", asked.Name}
	s.pins[id] = p
	go s.fetch(p, asked.Origins)
	s.answer(w, http.StatusAccepted, id)
}

// fetch connects to the origins, and gets the folder.
func (s *PinService) fetch(p *pinned, origins []string) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	for _, at := range origins {
		if info, err := p2p.AddrInfoFromString(at); err == nil {
			_ = s.host.Connect(ctx, *info)
		}
	}
	err := merkledag.FetchGraph(ctx, p.cid, s.dag)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.status = "pinned"; err != nil {
		p.status = "failed"
	}
}

func (s *PinService) answer(w http.ResponseWriter, status int, id string) {
	p := s.pins[id]
	var delegates []string
	for _, a := range s.host.Addrs() {
		delegates = append(delegates, a.String()+"/p2p/"+s.host.ID().String())
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"requestid": id, "status": p.status, "delegates": delegates,
		"pin": map[string]string{"cid": p.cid.String(), "name": p.name}, "info": map[string]string{}})
}

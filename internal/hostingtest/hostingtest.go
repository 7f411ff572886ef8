// Package hostingtest is a network of hosted models in memory, by the rules of protocol/hosting, and a tiny model: for
// tests of its providers and clients.
package hostingtest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/protocol/hosting"
)

// Chain is the chain ID.
const Chain = "starling-test"

// ErrNone is returned for a place or channel that does not exist.
var ErrNone = errors.New("hostingtest: no such place or channel")

// Network has one model. The zero value is not one: see New.
type Network struct {
	Rules hosting.Params
	Model hosting.Model

	mu       sync.Mutex
	height   int64
	places   map[string]hosting.Place
	channels map[uint64]hosting.Channel
	next     uint64
	coins    map[string]int64
}

// New returns a network with a model.
func New() *Network {
	return &Network{Rules: hosting.Params{FeePPM: 50_000, Close: 5, Unbonding: 10, MinBond: 1}, Model: hosting.Model{ID: 7,
		Owner: "owner", Name: "tiny", Files: canon.Sum("files"), Weights: canon.Sum("weights"), PartPPM: 100_000},
		places: map[string]hosting.Place{}, channels: map[uint64]hosting.Channel{}, coins: map[string]int64{}}
}

// Coins are the coins that an account got, less those that it gave; "": the community pool, "shares": those of the
// model.
func (n *Network) Coins(account string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.coins[account]
}

// Held are the coins in channels.
func (n *Network) Held() (sum int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.channels {
		sum += int64(c.Held())
	}
	return sum
}

// Pass lets blocks pass, and settles channels that close.
func (n *Network) Pass(blocks int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.height += blocks
	for _, c := range n.channels {
		if c.Expired(n.height) {
			n.settle(c)
		}
	}
}

func (n *Network) settle(c hosting.Channel) {
	p, payments := n.places[c.Provider].Settle(n.Rules, c, n.height)
	n.places[c.Provider] = p
	for _, x := range payments {
		n.coins[x.To] += int64(x.Amount)
	}
	delete(n.channels, c.ID)
}

// Host adds the place of a provider, or replaces it.
func (n *Network) Host(p hosting.Place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.Model = n.Model.ID
	n.places[p.Provider] = p
}

// Account is an account of the network.
type Account struct {
	*Network
	Name string
}

// As returns an account.
func (n *Network) As(name string) Account { return Account{n, name} }

// Places lists the places of providers.
func (a Account) Places(context.Context, uint64) (list []hosting.Place, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.places {
		list = append(list, p)
	}
	return list, nil
}

// Channels lists the open channels of an account.
func (a Account) Channels(_ context.Context, account string, provider bool) (list []hosting.Channel, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.channels {
		if provider && c.Provider == account || !provider && c.Payer == account {
			list = append(list, c)
		}
	}
	return list, nil
}

// Open opens a channel.
func (a Account) Open(_ context.Context, p hosting.Place, key []byte, amount uint64) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.channels {
		if bytes.Equal(c.Key, key) {
			return 0, hosting.ErrTwice
		}
	}
	place, c, err := a.places[p.Provider].OpenChannel(a.next+1, a.Name, slices.Clone(key), amount)
	if err != nil {
		return 0, err
	}
	a.next++
	a.places[p.Provider], a.channels[c.ID] = place, c
	a.coins[a.Name] -= int64(amount)
	return c.ID, nil
}

// Fund adds to a channel.
func (a Account) Fund(_ context.Context, channel, amount uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.channels[channel].Fund(a.Name, amount)
	if err == nil {
		a.channels[channel] = c
		a.coins[a.Name] -= int64(amount)
	}
	return err
}

// Redeem redeems a voucher.
func (a Account) Redeem(_ context.Context, v hosting.Voucher, total uint64) (hosting.Split, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, s, err := a.channels[v.Channel].Redeem(a.Rules, a.Model, a.Name, Chain, v, total)
	if err == nil {
		a.channels[v.Channel] = c
		a.coins[""] += int64(s.Fee)
		a.coins["shares"] += int64(s.Part)
		a.coins[a.Name] += int64(s.Provider)
	}
	return s, err
}

// Close closes a channel.
func (a Account) Close(_ context.Context, channel uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.channels[channel]
	if !ok {
		return ErrNone
	}
	c, over, err := c.Close(a.Rules, a.Name, a.height)
	if err != nil {
		return err
	}
	if a.channels[channel] = c; over {
		a.settle(c)
	}
	return nil
}

// Folder writes a tiny model with random weights of a seed, whose tokens are bytes, and which reads as many tokens.
func Folder(t testing.TB, seed uint64, tokens int) string { return FolderOf(t, seed, tokens, 16, 1) }

// FolderOf is Folder with a width and a number of layers.
func FolderOf(t testing.TB, seed uint64, tokens, width, layers int) string {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama,
		map[string]any{"vocab_size": 256, "max_position_embeddings": tokens, "hidden_size": width,
			"intermediate_size": 3 * width / 2, "num_hidden_layers": layers, "num_attention_heads": 2,
			"initializer_range": 0.5 / math.Sqrt(float64(width)/16)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Tensors() {
		names = append(names, n.Name)
	}
	var weights bytes.Buffer
	if err := safetensors.EncodeAs(&weights, names, c.Init(seed), nil, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"config.json": c.JSON(), "tokenizer.json": tokenizer.Bytes().JSON(),
		"model.safetensors": weights.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// AdapterOf writes an adapter of the model that FolderOf describes, with random weights of a seed.
func AdapterOf(t testing.TB, seed uint64, base string) string {
	t.Helper()
	m, err := folder.Read(os.DirFS(base))
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Config.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	tensors := a.InitAdapters(seed)
	var names []string
	for i, n := range a.Adapters() {
		philox.NormalTo(tensors[n.Name].F32(), seed, uint64(i))
		names = append(names, n.Name)
	}
	var weights bytes.Buffer
	if err := safetensors.EncodeAs(&weights, names, tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	config, err := a.AdapterJSON()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"adapter_config.json": config,
		"adapter_model.safetensors": weights.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

package node

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/files"
	"github.com/ipfs/boxo/ipld/merkledag"
	unixfile "github.com/ipfs/boxo/ipld/unixfs/file"
	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/sync"
	format "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p"
	p2p "github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/bundle"
)

// testIPFS gets the last checkpoint of a run by its CID, as `ipfs get` does, from a node that knows nothing of the
// client. The result is safetensors files with the tensors of the checkpoint.
func testIPFS(t *testing.T, out string) {
	o, err := rundir.OpenOutDir(out)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	lines, err := rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	if err != nil || len(lines) == 0 {
		t.Fatal(lines, err)
	}
	last := lines[len(lines)-1]
	store, err := blob.OpenDisk(filepath.Join(out, rundir.DirBlobs))
	if err != nil {
		t.Fatal(err)
	}
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	node, err := peer.New(peer.Config{Key: key, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	id, err := blob.Parse(last.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), last.Checkpoint)
	ipfsGet(t, node.Addrs()[0], id, dir)
	t.Run("Helia", func(t *testing.T) { testHelia(t, node.Addrs()[0], last.Checkpoint, dir) })

	want, err := bundle.LoadCheckpoint(t.Context(), last.AsCheckpoint(), store.Get)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"manifest.cbor", "state-00001-of-00001.safetensors"}) {
		t.Fatalf("%v, %v", names, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, names[1]))
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(data)
	if err != nil || len(file.Names()) != len(want.Params)*(1+len(want.Outer)) {
		t.Fatal(file, err)
	}
	for i, name := range want.Names {
		if got, err := file.Tensor(train.Param + name); err != nil || !bytes.Equal(got.Bytes(), want.Params[i].Bytes()) {
			t.Errorf("%s: %v", name, got)
		}
		for k, list := range want.Outer {
			if got, err := file.Tensor(train.Outer(k) + name); err != nil || !bytes.Equal(got.Bytes(), list[i].Bytes()) {
				t.Errorf("outer state %d of %s: %v", k, name, got)
			}
		}
	}
}

// testHelia gets a folder with a client of another make, in JavaScript, and compares it with one that holds the same.
func testHelia(t *testing.T, from, cid, want string) {
	client := filepath.Join("..", "web", "clients", "ipfs")
	if _, err := os.Stat(filepath.Join(client, "node_modules")); err != nil {
		t.Skip("Helia is not installed: npm install --ignore-scripts in web/clients/ipfs, and Node 24")
	}
	got := filepath.Join(t.TempDir(), cid)
	get := exec.CommandContext(t.Context(), "node", "get.mjs", from, cid, got)
	get.Dir = client
	if said, err := get.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	entries, err := os.ReadDir(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		a, err := os.ReadFile(filepath.Join(want, e.Name()))
		b, other := os.ReadFile(filepath.Join(got, e.Name()))
		if err != nil || other != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes of %d, %v, %v", e.Name(), len(b), len(a), err, other)
		}
	}
}

// ipfsGet writes the file or folder of a CID to a path, with the parts that an IPFS client is made of: Bitswap over a
// libp2p host of the library's defaults, connected to one address.
func ipfsGet(t *testing.T, from string, c blob.CID, path string) {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	blocks := blockstore.NewBlockstore(sync.MutexWrap(datastore.NewMapDatastore()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exchange := bitswap.New(ctx, bsnet.NewFromIpfsHost(h), nil, blocks)
	defer exchange.Close()
	to, err := p2p.AddrInfoFromString(from)
	if err == nil {
		err = h.Connect(ctx, *to)
	}
	if err != nil {
		t.Fatal(err)
	}
	dag := merkledag.NewDAGService(blockservice.New(blocks, exchange))
	var root format.Node
	var found files.Node
	if root, err = dag.Get(ctx, c); err == nil {
		if found, err = unixfile.NewUnixfsFile(ctx, dag, root); err == nil {
			err = files.WriteTo(found, path)
		}
	}
	if err != nil {
		t.Fatalf("get %s: %v", c, err)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/cmd/starling/trade"
	"github.com/starling-network/starling/internal/porttest"
)

// sells sells the files of the listed model: the buyer has a proof before it pays and gets them, byte for byte, and the
// holders of the shares get the price. A second sale answers with another key: the buyer has the price back, and the
// bond.
func (s *story) sells(listed catalog.Listed, out string) {
	t, dir, url, seller := s.T, s.dir, s.network, s.consumer
	t.Helper()
	buyer := filepath.Join(dir, "buyer")
	s.fund(buyer, "10", "100")
	sell := func(listen string, more ...string) (stop func()) {
		t.Helper()
		c := command(t, append([]string{"model", "sell", out, "--home", seller, "--network", url, "--listen", listen},
			more...)...)
		says(t, news(t, c), "is served at")
		return func() {
			t.Helper()
			_ = c.Process.Signal(syscall.SIGINT)
			if err := c.Wait(); err != nil {
				t.Errorf("the seller: %v", err)
			}
		}
	}
	terms := []string{"--price", "20usdc", "--bond", "5usdc", "--answer-blocks", "600", "--complaint-blocks", "50",
		"--listing", fmt.Sprint(listed.Listing)}
	at, setup := porttest.Address(t), filepath.Join(dir, "setup")
	for _, to := range []string{setup, setup + "-other"} {
		if code, stdout, stderr := starling(t, "model", "proof", "setup", "start", to, "--leaves", "1",
			"--alone"); code != 0 || !strings.Contains(stdout, "openings of a leaf") {
			t.Fatalf("a setup for sales: exit %d: %s%s", code, stdout, stderr)
		}
	}
	key := func(setup string) []string { return []string{"--proof", filepath.Join(setup, "verifying.key")} }
	stop := sell(at, append(terms, "--proof", setup)...)
	offered := sales(t, url)
	if len(offered) != 1 || offered[0].Price != "20.00" || offered[0].Coin != "USDC" || offered[0].Bond != "5.00" ||
		offered[0].Status != "open" || !offered[0].Proof || offered[0].Locations[0] != "http://"+at {
		t.Fatalf("%+v", offered)
	}
	buy := func(offer uint64, name string, want int, more ...string) (p trade.Purchase) {
		t.Helper()
		code, stdout, stderr := starling(t, append([]string{"model", "buy", fmt.Sprint(offer), "--to",
			filepath.Join(dir, name), "--most", "20usdc", "--window", "50", "--home", buyer, "--network", url, "-o", "json"},
			more...)...)
		if code != want {
			t.Fatalf("buy %d: exit %d\n%s%s", offer, code, stdout, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &p); err != nil {
			t.Fatalf("%v\n%s", err, stdout)
		}
		return p
	}
	refused := func(code string, args ...string) {
		t.Helper()
		exit, _, stderr := starling(t, append([]string{"model"}, append(args, "--network", url)...)...)
		if exit == 0 || !strings.Contains(stderr, "code: "+code) {
			t.Errorf("%v: exit %d\n%s", args, exit, stderr)
		}
	}
	first, none := fmt.Sprint(offered[0].Offer), filepath.Join(dir, "none")
	refused("WINDOW", "buy", first, "--to", none, "--home", buyer)
	refused("PRICE", "buy", first, "--to", none, "--home", buyer, "--window", "50", "--most", "19.99usdc")
	stop()
	refused("OFFERED", "sell", out, "--price", "21usdc", "--home", seller)
	stop = sell(at)
	bought := []string{"buy", first, "--to", none, "--home", buyer, "--window", "50"}
	refused("SALE_UNREACHABLE", append(bought, key(setup+"-other")...)...)
	refused("PROOF_KEY", append(bought, "--proof", filepath.Join(setup, "setup.json"))...)
	if p := buy(offered[0].Offer, "bought", 0, key(setup)...); p.Outcome != "bought" || p.Returned != "0.00" ||
		p.Opened != 1 {
		t.Errorf("%+v", p)
	}
	if p := buy(offered[0].Offer, "bought", 0); p.Outcome != "bought" {
		t.Errorf("the same command again: %+v", p)
	}
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", "lineage.jsonl"} {
		sold, err := os.ReadFile(filepath.Join(out, name))
		bought, err2 := os.ReadFile(filepath.Join(dir, "bought", name))
		if err != nil || err2 != nil || !bytes.Equal(sold, bought) {
			t.Errorf("%s: %d bytes of %d: %v, %v", name, len(bought), len(sold), err, err2)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bought", "starling.log")); err == nil {
		t.Error("the log was sold")
	}
	if code, _, stderr := starling(t, "model", "generate", filepath.Join(dir, "bought"), "--prompt", "number", "--tokens",
		"5"); code != 0 {
		t.Errorf("the bought model: exit %d\n%s", code, stderr)
	}
	for sales(t, url)[0].Sold != 1 && t.Context().Err() == nil {
		<-seldom()
	}
	stop()
	var owned catalog.Owned
	does(t, &owned, "model", "shares", listed.Shares, "--network", url)
	if len(owned.Coins) != 1 || owned.Coins[0] != (catalog.Amount{Coin: "USDC", Amount: "18.00"}) {
		t.Errorf("the holders of %s have %+v", listed.Shares, owned)
	}
	if exit, _, stderr := starling(t, "model", "sell", out, "--withdraw", "--home", seller, "--network", url, "--listen",
		at); exit != 0 || len(sales(t, url)) != 0 {
		t.Errorf("withdrawn: exit %d\n%s", exit, stderr)
	}

	lied := filepath.Join(seller, "sales", "out", "secrets.json")
	if err := os.Rename(filepath.Dir(lied), filepath.Dir(lied)+"-sold"); err != nil {
		t.Fatal(err)
	}
	sell(at, terms...)()
	text, err := os.ReadFile(lied)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.Index(text, []byte(`"key": "`)) + len(`"key": "`)
	if text[begin]++; text[begin] > 'z' || text[begin] == 'Z'+1 || text[begin] == '9'+1 || text[begin] < '0' {
		text[begin] = 'A' // another letter of base64
	}
	writeFile(t, lied, text)
	stop = sell(at)
	second := sales(t, url)[0]
	bought[1] = fmt.Sprint(second.Offer)
	refused("SALE_PROOF", append(bought, key(setup)...)...)
	p := buy(second.Offer, "lied", 10)
	if p.Outcome != "lied" || p.Leaf == nil || *p.Leaf != -1 || p.Returned != "22.50" {
		t.Errorf("%+v", p)
	}
	stop()
	if all := sales(t, url, "--all"); len(all) != 2 || all[0].Status != "lied" || all[1].Sold != 1 {
		t.Errorf("%+v", all)
	}
}

func sales(t *testing.T, network string, more ...string) []trade.Listed {
	t.Helper()
	var s struct{ Sales []trade.Listed }
	does(t, &s, append([]string{"model", "sales", "--network", network}, more...)...)
	return s.Sales
}

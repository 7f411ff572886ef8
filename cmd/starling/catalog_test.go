package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/cmd/starling/catalog"
)

// lists lists a base and the model that the job trained, pays revenue, of which the base has its royalty, and sells
// shares.
func (l *ledger) lists() {
	on := []string{"--network", l.network}
	folder := filepath.Join(l.dir, "model")
	l.must(os.Mkdir(folder, 0o755))
	l.must(os.WriteFile(filepath.Join(folder, "model.safetensors"), []byte("weights"), 0o600))
	add := func(name string, more ...string) []string {
		return l.as(name, append([]string{"model", "catalog", "add", folder, "--title"}, more...)...)
	}
	l.refuses(2, "a licence", add("pool", "Base", "--licence", "do what you want")...)
	l.refuses(2, "from 0 to 50", add("pool", "Base", "--licence", "MIT", "--royalty", "51")...)
	l.refuses(2, "are needed", add("pool", "Base")...)
	l.refuses(3, "NO_MODEL", l.as("pool", "model", "catalog", "add", l.home("pool"), "--title", "Keys", "--licence",
		"MIT")...)
	l.says("its shares are listing/1", add("pool", "Base", "--licence", "Apache-2.0", "--royalty", "12.5")...)
	l.refuses(3, "NO_RUN", add("worker", "Tuned", "--licence", "Apache-2.0", "--used-by", folder)...)
	l.refuses(1, "CATALOG_9", add("worker", "Tuned", "--licence", "Apache-2.0", "--job", "job")...)
	l.refuses(1, "CATALOG_8", add("worker", "Tuned", "--licence", "Apache-2.0", "--parent", "9")...)
	l.refuses(1, "CATALOG_3", add("consumer", "Tuned", "--licence", "MIT", "--job", "job", "--parent", "1")...)
	l.says("500000 shares", l.as("worker", "model", "transfer", "job", "500000", l.clients["consumer"].Address())...)
	var listed catalog.Listed
	l.must(json.Unmarshal([]byte(l.says("", add("consumer", "Tuned", "--licence", "LicenseRef-ours", "--licence-text",
		filepath.Join(folder, "model.safetensors"), "--job", "job", "--parent", "1", "-o", "json")...)), &listed))
	if listed.Listing != 2 || listed.Shares != "job" || len(listed.Parents) != 1 || listed.Text == "" ||
		listed.Parents[0].Royalty != "12.50" || listed.Royalty != "0.00" {
		l.t.Errorf("%+v", listed)
	}
	l.says("Tuned", append(on, "model", "catalog", "list")...)
	if found := l.says("2\n", append(on, "model", "catalog", "list", "--parent", "1", "-o", "name")...); found != "2\n" {
		l.t.Errorf("made from the base: %q", found)
	}
	for _, work := range []string{"2", "job"} {
		tree := l.says("87.50 %", append(on, "model", "catalog", "lineage", work)...)
		if lines := strings.Split(tree, "\n"); len(lines) < 3 || !strings.HasPrefix(lines[2], "  1 Base  12.50 %") {
			l.t.Errorf("%s", tree)
		}
	}
	l.refuses(3, "NOT_FOUND", append(on, "model", "catalog", "lineage", "7")...)
	l.says("8.00 ZEN are paid", l.as("worker", "model", "pay", "job", "8")...)
	l.says("1.00 ZEN are claimed", l.as("pool", "model", "claim", "listing/1")...)

	l.says("1000 shares",
		l.as("consumer", "model", "transfer", "job", "1000", l.clients["worker"].Address())...)
	l.refuses(2, "--price is needed", l.as("worker", "model", "catalog", "offer", "job", "1000")...)
	l.says("offer 1: 1000 shares of job for 0.0005 ZEN each",
		l.as("worker", "model", "catalog", "offer", "job", "1000", "--price", "0.0005")...)
	l.says("0.50 ZEN", append(on, "model", "catalog", "offers")...)
	l.refuses(1, "CATALOG_7", l.as("worker", "model", "catalog", "buy", "1", "10")...)
	l.says("600 shares of job for 0.30 ZEN", l.as("pool", "model", "catalog", "buy", "1", "600")...)
	l.refuses(1, "CATALOG_6", l.as("pool", "model", "catalog", "buy", "1", "401")...)
	l.says(`"left":400`, append(on, "model", "catalog", "offers", "-o", "json")...)
	l.says("400 shares of offer 1 came back", l.as("worker", "model", "catalog", "withdraw", "1")...)
	l.says("600 of 1000000", append(on, "model", "shares", "job")...)
}

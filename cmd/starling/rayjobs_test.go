package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/starling-network/starling/node/rayjobs"
)

// A tool for Ray clusters starts a worker of a network on a host, follows its log and stops it: the worker drains.
func TestFleetServesToolsForRay(t *testing.T) {
	l := startLedger(t, "worker")
	c := command(t, "fleet", "serve", "--home", l.dir, "--listen", "127.0.0.1:0", "-o", "json")
	out, err := c.StdoutPipe()
	l.must(err)
	news(t, c)
	line, err := bufio.NewReader(out).ReadString('\n')
	l.must(err)
	var at struct{ URL string }
	l.must(json.Unmarshal([]byte(line), &at))
	words := []string{"starling"}
	for _, w := range l.as("worker", "worker", "up", "--measure=false", "--upload", "5000") {
		words = append(words, "'"+w+"'")
	}
	body, err := json.Marshal(rayjobs.Request{Entrypoint: strings.Join(words, " "), ID: "gpu-0", Memory: 4096 << 20})
	l.must(err)
	post := func(path, body string) {
		t.Helper()
		r, err := http.Post(at.URL+path, "application/json", strings.NewReader(body))
		l.must(err)
		if l.must(r.Body.Close()); r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, r.Status)
		}
	}
	post("/api/jobs/", string(body))
	stream := strings.Replace(at.URL, "http", "ws", 1) + "/api/jobs/gpu-0/logs/tail"
	conn, r, err := websocket.DefaultDialer.Dial(stream, nil)
	l.must(err)
	l.must(r.Body.Close())
	defer conn.Close()
	log := ""
	for asked := false; ; {
		_, b, err := conn.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			break
		}
		l.must(err)
		if log += string(b); !asked && strings.Contains(log, "offers its work") {
			asked = true
			post("/api/jobs/gpu-0/stop", "")
		}
	}
	r, err = http.Get(at.URL + "/api/jobs/gpu-0")
	l.must(err)
	defer r.Body.Close()
	var j rayjobs.Job
	l.must(json.NewDecoder(r.Body).Decode(&j))
	if j.Status != rayjobs.Stopped || !strings.Contains(log, "offers its work") {
		t.Errorf("%+v\n%s", j, log)
	}
}

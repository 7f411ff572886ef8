package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// browserTimeout bounds the life of a browser.
const browserTimeout = 90 * time.Second

// paintTimes opens an address in a browser of its own, and returns when it first painted content and when the page of
// the dashboard was there, in milliseconds from the beginning of the navigation. It speaks the DevTools protocol over
// the pipes that --remote-debugging-pipe reads and writes: messages of JSON that end with a zero byte.
func paintTimes(ctx context.Context, browser, url string) (painted, shown float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, browserTimeout)
	defer cancel()
	profile, err := os.MkdirTemp("", "starling-browser-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(profile)
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return 0, 0, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	_, _ = theirIn.Close(), theirOut.Close()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was told to end
		_, _ = ourIn.Close(), ourOut.Close()
	}()
	context.AfterFunc(ctx, func() { _ = ourIn.SetReadDeadline(time.Now()) })
	p := &protocol{out: ourOut, in: bufio.NewReaderSize(ourIn, 1<<20)}
	var made struct{ TargetID string }
	if err := p.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &made); err != nil {
		return 0, 0, err
	}
	var attached struct{ SessionID string }
	if err := p.call("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true},
		&attached); err != nil {
		return 0, 0, err
	}
	if err := p.call(attached.SessionID, "Page.navigate", map[string]any{"url": url}, nil); err != nil {
		return 0, 0, err
	}
	var result struct {
		Result           struct{ Value [2]float64 }
		ExceptionDetails any
	}
	err = p.call(attached.SessionID, "Runtime.evaluate",
		map[string]any{"awaitPromise": true, "returnByValue": true, "expression": `new Promise(done => {
		const at = name => performance.getEntriesByName(name)[0]?.startTime ?? 0;
		const finish = () => done([at('first-contentful-paint'), at('shown')]);
		const look = () => at('shown') && at('first-contentful-paint')
			? requestAnimationFrame(finish) : setTimeout(look, 5);
		look();
	})`}, &result)
	if err == nil && result.ExceptionDetails != nil {
		err = fmt.Errorf("benchmark: the page failed: %v", result.ExceptionDetails)
	}
	return result.Result.Value[0], result.Result.Value[1], err
}

// protocol is a connection to a browser. Events are passed over.
type protocol struct {
	out *os.File
	in  *bufio.Reader
	id  int
}

func (p *protocol) call(session, method string, params, into any) error {
	p.id++
	text, err := json.Marshal(map[string]any{"id": p.id, "method": method, "params": params})
	if session != "" && err == nil {
		text, err = json.Marshal(map[string]any{"id": p.id, "method": method, "params": params, "sessionId": session})
	}
	if err != nil {
		return err
	}
	if _, err := p.out.Write(append(text, 0)); err != nil {
		return fmt.Errorf("benchmark: the browser is gone: %w", err)
	}
	for {
		text, err := p.in.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("benchmark: the browser is gone: %w", err)
		}
		var m struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			return err
		}
		switch {
		case m.ID != p.id:
		case m.Error != nil:
			return errors.New("benchmark: " + method + ": " + m.Error.Message)
		case into == nil:
			return nil
		default:
			return json.Unmarshal(m.Result, into)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Command browser opens a console in headless Chromium, and checks what users see. It reads commands from standard
// input, one a line, and answers each with a line: "ok", or what is wrong.
//
//	open URL            open a page
//	until EXPRESSION    wait up to 2 s until a JavaScript expression is true
//	key SELECTOR NAME   focus an element and press a key
//	scheme dark|light   emulate a colour scheme
//	picture FILE        write a screenshot
//	requests            check that each request goes to the host of the page
package main

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	width, height = 1280, 860
	untilTimeout  = 2 * time.Second
	openTimeout   = 60 * time.Second
)

type browser struct {
	ctx      context.Context
	mu       sync.Mutex
	requests []string
	host     string
}

func main() {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(width, height))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(allocated)
	defer closeTab()
	b := &browser{ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			b.requests = append(b.requests, sent.Request.URL)
			b.mu.Unlock()
		}
	})
	// The first run starts the browser, which ends with the context of this run.
	if err := chromedp.Run(ctx, network.Enable()); err != nil {
		fmt.Println("no browser:", err)
		return
	}
	fmt.Println("ok")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		if err := b.do(verb, rest); err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println("ok")
	}
}

func (b *browser) do(verb, rest string) error {
	ctx, cancel := context.WithTimeout(b.ctx, openTimeout)
	defer cancel()
	switch verb {
	case "open":
		parsed, err := url.Parse(rest)
		if err != nil {
			return err
		}
		b.host = parsed.Host
		return chromedp.Run(ctx, chromedp.Navigate(rest))
	case "until":
		return chromedp.Run(ctx, chromedp.Poll(rest, nil, chromedp.WithPollingTimeout(untilTimeout)))
	case "key":
		selector, name, _ := strings.Cut(rest, " ")
		keys := map[string]string{"Enter": kb.Enter, "ArrowRight": kb.ArrowRight, "Escape": kb.Escape}
		return chromedp.Run(ctx, chromedp.Focus(selector, chromedp.ByQuery), chromedp.KeyEvent(keys[name]))
	case "scheme":
		feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: rest}
		return chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{feature}))
	case "picture":
		var picture []byte
		if err := chromedp.Run(ctx, chromedp.CaptureScreenshot(&picture)); err != nil {
			return err
		}
		return os.WriteFile(rest, picture, 0o644)
	case "requests":
		return b.checkRequests()
	}
	return fmt.Errorf("unknown command %q", verb)
}

func (b *browser) checkRequests() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) == 0 {
		return fmt.Errorf("the page made no request")
	}
	for _, request := range b.requests {
		if parsed, err := url.Parse(request); err != nil || parsed.Host != b.host {
			return fmt.Errorf("a request went to %s", request)
		}
	}
	return nil
}

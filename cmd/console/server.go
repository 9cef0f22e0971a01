// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

const (
	headerTimeout = 5 * time.Second
	// heartbeat is the longest silence of a stream.
	heartbeat = 15 * time.Second
	// maxStreams is the number of streams that are served at the same time.
	maxStreams = 16
	// policy permits what the page needs: its own scripts, styles and data.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'"
)

// Server serves the page and the pictures of a Live on loopback.
type Server struct {
	listener net.Listener
	live     *Live
	token    string
	hosts    []string
	streams  chan struct{}
	handler  http.Handler
}

// NewServer returns a Server for a listener on loopback, with a random token.
func NewServer(listener net.Listener, live *Live) *Server {
	s := &Server{listener: listener, live: live, token: rand.Text(), streams: make(chan struct{}, maxStreams)}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		port := strconv.Itoa(address.Port)
		s.hosts = []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}
	}
	mux := http.NewServeMux()
	if files, err := fs.Sub(page, "page"); err == nil {
		mux.Handle("GET /", http.FileServerFS(files))
	}
	mux.Handle("GET /api/picture", s.authorized(s.picture))
	mux.Handle("GET /api/events", s.authorized(s.events))
	s.handler = s.guarded(mux)
	return s
}

// URL returns the address of the page with the token in its fragment, which browsers do not send.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/#" + s.token }

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Streams end with the context.
	defer stop()
	if err := server.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console on %s: %w; run the command again", s.listener.Addr(), err)
	}
	return nil
}

// guarded refuses requests of other sites. The Host of a request is the name of another site if a DNS server
// rebinds that name to loopback.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet {
			header.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is served", http.StatusMethodNotAllowed)
			return
		}
		if !s.own(r) {
			http.Error(w, "the request comes from another site; open the address that hypershift console printed",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) own(r *http.Request) bool {
	known := false
	for _, host := range s.hosts {
		known = known || r.Host == host
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if !known || origin != "" && origin != "http://"+r.Host {
		return false
	}
	// Opening the page from a file or a link is cross-site. It returns the static files only.
	return site == "" || site == "none" || site == "same-origin" || !strings.HasPrefix(r.URL.Path, "/api/")
}

// authorized refuses requests without the token.
func (s *Server) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			http.Error(w, "the token is missing or old; open the address that hypershift console printed",
				http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

func (s *Server) picture(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	current, _ := s.live.Current()
	_, _ = w.Write(current) // An error means that the client has disconnected.
}

// events streams pictures as server-sent events. A slow client gets the newest picture only.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many pages are open; close some", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var sent []byte
	for {
		current, next := s.live.Current()
		message := []byte(": alive\n\n")
		if !bytes.Equal(current, sent) {
			message, sent = fmt.Appendf(nil, "event: picture\ndata: %s\n\n", current), current
		}
		if _, err := w.Write(message); err != nil || out.Flush() != nil {
			return
		}
		timer := time.NewTimer(heartbeat)
		select {
		case <-r.Context().Done():
			timer.Stop()
			return
		case <-next:
		case <-timer.C:
		}
		timer.Stop()
	}
}

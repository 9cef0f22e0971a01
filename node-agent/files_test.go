// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/support/nodeplan"
)

func TestNames(t *testing.T) {
	t.Parallel()
	kernel, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, want string }{
		"When the hostname has capitals and a domain, the Node name should be in lower case": {"Worker-1.Example.COM\n", "worker-1.example.com"},
		"When the hostname file is empty, it should use the kernel's hostname":               {" \n", strings.ToLower(kernel)},
		"When the hostname file is missing, it should use the kernel's hostname":             {"", strings.ToLower(kernel)},
	} {
		t.Run(name, func(t *testing.T) {
			m := hosttest.New(t)
			if tt.file != "" {
				m.Put("/etc/hostname", tt.file)
			}
			NewWithT(t).Expect(nodeName(m.Host)).To(Equal(tt.want))
		})
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"When a message is short, it should not be changed":                           {"no space", "no space"},
		"When a message has the maximum length, it should not be changed":             {strings.Repeat("x", maxMessage), strings.Repeat("x", maxMessage)},
		"When a message is too long, it should be truncated with an ellipsis":         {strings.Repeat("x", maxMessage+1), strings.Repeat("x", maxMessage) + " ..."},
		"When truncation splits a character, the character should be dropped":         {strings.Repeat("x", maxMessage-1) + "ü and more", strings.Repeat("x", maxMessage-1) + " ..."},
		"When the output of a program is not UTF-8, invalid bytes should be replaced": {"exit status 1: \xff\xfe", "exit status 1: ?"},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), sentence(tt.text)
			g.Expect(got).To(Equal(tt.want))
			g.Expect(utf8.ValidString(got)).To(BeTrue())
			// The API server returns the text as JSON encodes it. If that differed from the text, the Node would be annotated
			// again at each event.
			raw, err := json.Marshal(got)
			g.Expect(err).NotTo(HaveOccurred())
			back := ""
			g.Expect(json.Unmarshal(raw, &back)).To(Succeed())
			g.Expect(back).To(Equal(got))
		})
	}
}

func TestCurrentHash(t *testing.T) {
	t.Parallel()
	const plan = `{"version": 1`
	for name, tt := range map[string]struct{ plan, headers, want, says string }{
		"When the plan has a configuration hash, it should return that hash":                     {plan + `, "configHash": "new"}`, "TargetConfigVersionHash: old\n", "new", ""},
		"When the plan has no configuration hash, it should return the hash of the installation": {plan + "}", "Authorization: Bearer x\nTargetConfigVersionHash: old \nNodePool: a/b\n", "old", ""},
		"When neither has a configuration hash, it should return an empty hash and no error":     {plan + "}", "NodePool: a/b\n", "", ""},
		"When Ignition installed the machine without headers, it should return an empty hash":    {plan + "}", "", "", ""},
		"When there is no plan, it should return an error":                                       {"", "TargetConfigVersionHash: old\n", "", "0 bytes are not a node plan"},
		"When the plan is truncated, it should return an error":                                  {plan, "", "", "13 bytes are not a node plan"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), hosttest.New(t)
			for path, text := range map[string]string{planPath: tt.plan, serverDir + "headers": tt.headers} {
				if text != "" {
					m.Put(path, text)
				}
			}
			got, err := currentHash(m.Host)
			g.Expect(got).To(Equal(tt.want))
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	g, m := NewWithT(t), hosttest.New(t)
	m.Put(serverDir+"headers", "Authorization: Bearer a: b \n\nno header\nNodePool: clusters/demo\r\nAuthorization: Bearer last")
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://ignition.example/ignition", nil)
	g.Expect(addHeaders(m.Host, request)).To(Succeed())
	g.Expect(request.Header).To(Equal(http.Header{"Authorization": {"Bearer last"}, "Nodepool": {"clusters/demo"}}))
}

// TestServerFiles covers missing and damaged files of the first stage, which are the only data about the server.
func TestServerFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, text, says string }{
		"the CA is missing":                 {"", "", "ca.crt holds no certificate"},
		"the CA is truncated":               {serverDir + "ca.crt", "-----BEGIN CERTIFICATE-----\nhunter2", "ca.crt holds no certificate"},
		"the CA cannot be read":             {serverDir + "ca.crt/x", "", "is a directory"},
		"the server address cannot be read": {serverDir + "endpoint/x", "", "is a directory"},
		"the headers cannot be read":        {serverDir + "headers/x", "", "ca.crt holds no certificate"},
	} {
		t.Run("When "+name+", the machine should send no request, and log the reason", func(t *testing.T) {
			g, m := NewWithT(t), hosttest.New(t)
			if tt.path != "" {
				m.Put(tt.path, tt.text)
			}
			_, err := plan(t.Context(), m.Host)
			g.Expect(err).To(MatchError(And(HavePrefix("fetching the node plan: "), ContainSubstring(tt.says), Not(ContainSubstring("hunter2")))))
			g.Expect(m.Exists(planPath)).To(BeFalse())
		})
	}
	t.Run("When the stored plan is corrupt, it should return an error and not fetch another one", func(t *testing.T) {
		g, m := NewWithT(t), hosttest.New(t)
		m.Put(planPath, `{"version": 1, "pullSecret": "hunter2`)
		_, err := plan(t.Context(), m.Host)
		g.Expect(err).To(MatchError(And(ContainSubstring("are not a node plan"), Not(ContainSubstring("hunter2")))))
	})
}

func TestGet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter)
		says   string
	}{
		"answers":            {func(w http.ResponseWriter) { _, _ = w.Write([]byte("content")) }, ""},
		"refuses":            {func(w http.ResponseWriter) { http.Error(w, "  no token  ", http.StatusUnauthorized) }, "/x answered 401 Unauthorized: no token"},
		"has no content":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, "answered 204 No Content"},
		"sends a long error": {func(w http.ResponseWriter) { http.Error(w, strings.Repeat("x", 301), http.StatusBadGateway) }, "answered 502 Bad Gateway: " + strings.Repeat("x", 300)},
		"closes the connection": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "reading the answer of "},
	} {
		t.Run("When the server "+name+", it should return the complete answer or an error", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Repr-Digest", "d"); tt.answer(w) }))
			t.Cleanup(server.Close)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/x", nil)
			g.Expect(err).NotTo(HaveOccurred())
			body, header, err := get(server.Client(), request)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				g.Expect(err.Error()).NotTo(ContainSubstring(strings.Repeat("x", 301)))
				g.Expect(body).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body) + header.Get("Repr-Digest")).To(Equal("contentd"))
		})
	}
}

func TestDirect(t *testing.T) {
	t.Parallel()
	const proxy = "HTTPS_PROXY=\"http://proxy.example:3128\"\n"
	for name, tt := range map[string]struct {
		environment string
		want        bool
		after       string
	}{
		"the machine has no proxy":                 {"", true, ""},
		"NO_PROXY is not set":                      {proxy, true, proxy},
		"NO_PROXY contains all hosts":              {proxy + "NO_PROXY=\"*\"\n", true, proxy + "NO_PROXY=\"*\"\n"},
		"the server is first in NO_PROXY":          {"NO_PROXY=\"10.0.0.5,.svc\"\n", true, "NO_PROXY=\"10.0.0.5,.svc\"\n"},
		"the server is last in NO_PROXY":           {"NO_PROXY=\".svc,10.0.0.5\"", true, "NO_PROXY=\".svc,10.0.0.5\""},
		"the server is the only entry in NO_PROXY": {"NO_PROXY=\"10.0.0.5\"\n", true, "NO_PROXY=\"10.0.0.5\"\n"},
		"NO_PROXY has a longer address":            {"NO_PROXY=\"10.0.0.50\"\n", false, "NO_PROXY=\"10.0.0.5,10.0.0.50\"\n"},
		"NO_PROXY has a similar address":           {"NO_PROXY=\"110.0.0.5\"\n", false, "NO_PROXY=\"10.0.0.5,110.0.0.5\"\n"},
		"a proxy is set before NO_PROXY":           {proxy + "NO_PROXY=\".svc\"\n", false, proxy + "NO_PROXY=\"10.0.0.5,.svc\"\n"},
	} {
		t.Run("When "+name+", the kubelet should reach the server without the proxy", func(t *testing.T) {
			t.Parallel()
			g, m := NewWithT(t), hosttest.New(t)
			if tt.environment != "" {
				m.PutMode(nodeplan.ProxyEnvironment, tt.environment, 0o600)
			}
			f, to := &follower{host: m.Host}, address{api: "https://10.0.0.5:6443"}
			g.Expect(f.direct(to)).To(Equal(tt.want))
			for range 2 {
				g.Expect(f.goDirect(to)).To(Succeed())
			}
			if tt.environment == "" {
				g.Expect(m.Exists(nodeplan.ProxyEnvironment)).To(BeFalse())
				return
			}
			g.Expect(m.Text(nodeplan.ProxyEnvironment)).To(Equal(tt.after))
			g.Expect(m.Mode(nodeplan.ProxyEnvironment).Perm()).To(BeEquivalentTo(0o600), "a password may be in it")
			g.Expect(f.direct(to)).To(BeTrue())
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]address{
		"https://10.0.0.5:6443 10.0.0.6": {"https://10.0.0.5:6443", "10.0.0.6"}, "https://10.0.0.5:6443": {"https://10.0.0.5:6443", ""}, "": {},
	} {
		g := NewWithT(t)
		g.Expect(parseAddress(text)).To(Equal(want))
		g.Expect(want.String()).To(Equal(text), "what the Node is told is read back as the same")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"an extra argument for run":     {[]string{"run", "now"}, `unknown command "now" for "node-agent run"`},
		"an unknown command":            {[]string{"walk"}, `unknown command "walk" for "node-agent"`},
		"an extra argument for follow":  {[]string{"follow", "me"}, `unknown command "me" for "node-agent follow"`},
		"an invalid timeout":            {[]string{"follow", "--ready-timeout", "soon"}, "ready-timeout"},
		"an extra argument for sandbox": {[]string{"sandbox", "x"}, `unknown command "x" for "node-agent sandbox"`},
	} {
		t.Run("When node-agent gets "+name+", it should return an error and do nothing", func(t *testing.T) {
			t.Parallel()
			cmd := command()
			cmd.SetArgs(tt.args)
			cmd.SetOut(&strings.Builder{})
			cmd.SetErr(&strings.Builder{})
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tt.says)))
		})
	}
	t.Run("When the kubelet of the release is missing, it should return an error that names the program", func(t *testing.T) {
		m := hosttest.New(t)
		m.Put("/etc/hostname", "worker-1\n")
		err := kubelet(m.Host, []string{"--config=/etc/kubernetes/kubelet.yaml"})
		NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("starting "+m.Path("/opt/hypershift/node/current/usr/bin/kubelet")+": "), ContainSubstring("no such file"))))
	})
}

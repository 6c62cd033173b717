// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the peer benchmarks share: bulk TCP flows in ns-3, and the CPU clock.

#ifndef AIRPATH_PEERS_NS3_FLOW_H
#define AIRPATH_PEERS_NS3_FLOW_H

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <sys/resource.h>

#include <cstdint>

#ifndef NS3_VERSION_TEXT
#define NS3_VERSION_TEXT "unknown"
#endif

using namespace ns3;

namespace
{

constexpr uint32_t kMss = 1448; // + 12 timestamp option + 40 headers = 1500
constexpr uint32_t kIpPacket = 1500;
constexpr uint32_t kSocketBuffer = 64u << 20;
constexpr uint32_t kPort = 5001; // of the first flow

double CpuSeconds()
{
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    auto s = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    return s(u.ru_utime) + s(u.ru_stime);
}

// One transfer: an endless source, and a sink which counts and discards.
class Flow
{
  public:
    void Listen(Ptr<Node> node, uint16_t port)
    {
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accepted, this));
    }

    void Start(Ptr<Node> node, InetSocketAddress peer, uint32_t ahead)
    {
        m_ahead = ahead;
        m_source = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_source->Bind();
        m_source->SetConnectCallback(MakeCallback(&Flow::Connected, this),
                                     MakeCallback(&Flow::Failed, this));
        m_source->SetSendCallback(MakeCallback(&Flow::Room, this));
        m_source->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_source->Connect(peer);
    }

    uint64_t Delivered() const { return m_delivered; }
    uint64_t Retransmissions() const { return m_retransmissions; }

  private:
    void Accepted(Ptr<Socket> s, const Address&)
    {
        m_sink = s;
        s->SetRecvCallback(MakeCallback(&Flow::Arrived, this));
    }

    void Arrived(Ptr<Socket> s)
    {
        while (Ptr<Packet> p = s->Recv())
        {
            if (p->GetSize() == 0)
            {
                break;
            }
            m_delivered += p->GetSize();
        }
    }

    void Connected(Ptr<Socket> s)
    {
        m_open = true;
        Fill(s, s->GetTxAvailable());
    }

    void Failed(Ptr<Socket>) { NS_FATAL_ERROR("a flow could not connect"); }

    void Room(Ptr<Socket> s, uint32_t available)
    {
        if (m_open)
        {
            Fill(s, available);
        }
    }

    // Writes of exactly one segment spare ns-3 from splitting and joining packets.
    // The send buffer holds at most m_ahead bytes: several times what the path can
    // hold, so the congestion window decides, yet no time goes into writing data
    // which would never be sent.
    void Fill(Ptr<Socket> s, uint32_t available)
    {
        const uint32_t spare = kSocketBuffer - m_ahead;
        for (; available >= spare + kMss; available -= kMss)
        {
            if (s->Send(Create<Packet>(kMss)) < 0)
            {
                break;
            }
        }
    }

    void Sent(Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase>)
    {
        const uint32_t size = p->GetSize();
        if (size == 0)
        {
            return;
        }
        const SequenceNumber32 seq = h.GetSequenceNumber();
        if (m_any && seq < m_highest)
        {
            ++m_retransmissions;
            return;
        }
        m_any = true;
        m_highest = seq + size;
    }

    Ptr<Socket> m_listener, m_source, m_sink;
    SequenceNumber32 m_highest;
    uint64_t m_delivered = 0;
    uint64_t m_retransmissions = 0;
    uint32_t m_ahead = 0;
    bool m_open = false;
    bool m_any = false;
};

void SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
}

} // namespace

#endif

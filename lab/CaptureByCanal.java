import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.instance.manager.CanalInstanceWithManager;
import com.alibaba.otter.canal.instance.manager.model.Canal;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter;
import com.alibaba.otter.canal.parse.inbound.mysql.AbstractMysqlEventParser;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.MemoryTableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDB;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDBFactory;
import com.alibaba.otter.canal.protocol.ClientIdentity;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.Reader;
import java.io.Writer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import org.slf4j.LoggerFactory;

/**
 * Runs Canal's embedded server with the properties file that it is given, from the beginning of the log, until it is asked to end.
 *
 * Each flat message becomes a line of FILE.jsonl: the topic, and the text that Canal's Kafka producer makes. It has no key.
 */
public final class CaptureByCanal {
    private static final String DESTINATION = "lab";

    public static void main(String[] files) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1); // Canal has threads that would go on
        });
        ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.WARN);
        Properties settings = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(files[0]))) {
            settings.load(reader);
        }
        CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
        server.setCanalInstanceGenerator(name -> instance(settings));
        server.start();
        server.start(DESTINATION);
        ClientIdentity client = new ClientIdentity(DESTINATION, (short) 1);
        server.subscribe(client);
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);
        try (Writer lines = Files.newBufferedWriter(Path.of(files[0] + ".jsonl"), StandardCharsets.UTF_8,
                StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            while (true) {
                Message message = server.getWithoutAck(client, 100);
                if (message.getId() == -1) {
                    Thread.sleep(100);
                    continue;
                }
                var rows = MQMessageUtils.buildMessageData(message, pool);
                for (FlatMessage flat : MQMessageUtils.messageConverter(rows, message.getId())) {
                    String value = JSON.toJSONString(flat, JSONWriter.Feature.WriteNulls);
                    lines.write(JSON.toJSONString(Map.of("topic", DESTINATION, "value", value)) + "\n");
                }
                lines.flush();
                server.ack(client, message.getId());
            }
        }
    }

    /** The structures of tables at each place of the log are kept in memory, as the log is read from its beginning. */
    private static CanalInstanceWithManager instance(Properties settings) {
        CanalInstanceWithManager instance = new CanalInstanceWithManager(canal(settings), "lab\\..*");
        ((AbstractMysqlEventParser) instance.getEventParser()).setTableMetaTSDBFactory(new TableMetaTSDBFactory() {
            @Override
            public TableMetaTSDB build(String destination, String xml) {
                return new MemoryTableMeta() {
                    @Override
                    public boolean rollback(EntryPosition beginning) {
                        return true;
                    }
                };
            }

            @Override
            public void destory(String destination) { // Canal's own spelling
            }
        });
        return instance;
    }

    private static Canal canal(Properties settings) {
        CanalParameter of = new CanalParameter();
        of.setMetaMode(CanalParameter.MetaMode.MEMORY);
        of.setIndexMode(CanalParameter.IndexMode.MEMORY);
        of.setHaMode(CanalParameter.HAMode.HEARTBEAT);
        of.setStorageMode(CanalParameter.StorageMode.MEMORY);
        of.setMemoryStorageBufferSize(16 * 1024);
        of.setSourcingType(CanalParameter.SourcingType.MYSQL);
        InetSocketAddress address = new InetSocketAddress(settings.getProperty("host"), Integer.parseInt(settings.getProperty("port")));
        of.setDbAddresses(List.of(address));
        of.setDbUsername(settings.getProperty("user"));
        of.setDbPassword(settings.getProperty("password"));
        of.setPositions(List.of("{\"journalName\":\"" + settings.getProperty("log") + "\",\"position\":4}"));
        of.setSlaveId(999L);
        of.setDefaultConnectionTimeoutInSeconds(30);
        of.setConnectionCharset("UTF-8");
        of.setConnectionCharsetNumber((byte) 33);
        of.setReceiveBufferSize(16 * 1024);
        of.setSendBufferSize(16 * 1024);
        of.setDetectingEnable(false);
        of.setTsdbEnable(true);
        of.setTsdbJdbcUrl("none"); // these three must not be null
        of.setTsdbJdbcUserName("none");
        of.setTsdbJdbcPassword("none");
        of.setDdlIsolation(true);
        of.setParallel(false);
        Canal canal = new Canal();
        canal.setId(1L);
        canal.setName(DESTINATION);
        canal.setCanalParameter(of);
        return canal;
    }
}

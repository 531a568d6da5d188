import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Runs Debezium's embedded engine once for each properties file that it is given, all in this process, until it is asked to end.
 *
 * Each record becomes a line of FILE.jsonl: its topic, and the texts of key and value as Kafka Connect's JSON converter makes
 * them of the settings key.converter.* and value.converter.* . A new process goes on behind the lines that are there.
 */
public final class CaptureByDebezium {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] files) throws Exception {
        List<DebeziumEngine<?>> engines = new ArrayList<>();
        for (String file : files) {
            engines.add(start(Path.of(file)));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> engines.forEach(CaptureByDebezium::close)));
        Thread.currentThread().join();
    }

    private static DebeziumEngine<?> start(Path file) throws IOException {
        Properties settings = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            settings.load(reader);
        }
        JsonConverter keys = converter(settings, "key.converter.", true);
        JsonConverter values = converter(settings, "value.converter.", false);
        Writer lines = Files.newBufferedWriter(Path.of(file + ".jsonl"), StandardCharsets.UTF_8,
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        lines.write("\n"); // a process that was killed may have left half a line
        DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine = DebeziumEngine.create(Connect.class)
            .using(settings)
            .notifying(event -> write(lines, event.value(), keys, values))
            .using((success, message, error) -> {
                if (!success) {
                    System.err.println("ENGINE FAILED " + file.getFileName() + ": " + message);
                    if (error != null) {
                        error.printStackTrace();
                    }
                }
            })
            .build();
        Thread thread = new Thread(engine, file.getFileName().toString());
        thread.setDaemon(true);
        thread.start();
        return engine;
    }

    private static JsonConverter converter(Properties settings, String prefix, boolean isKey) {
        Map<String, Object> own = new HashMap<>();
        settings.stringPropertyNames().stream().filter(name -> name.startsWith(prefix))
            .forEach(name -> own.put(name.substring(prefix.length()), settings.getProperty(name)));
        JsonConverter converter = new JsonConverter();
        converter.configure(own, isKey);
        return converter;
    }

    private static void write(Writer lines, SourceRecord record, JsonConverter keys, JsonConverter values) {
        ObjectNode line = JSON.createObjectNode().put("topic", record.topic());
        line.put("key", text(keys, record.topic(), record.keySchema(), record.key()));
        line.put("value", text(values, record.topic(), record.valueSchema(), record.value()));
        try {
            lines.write(JSON.writeValueAsString(line) + "\n");
            lines.flush();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String text(JsonConverter converter, String topic, Schema schema, Object value) {
        byte[] bytes = converter.fromConnectData(topic, schema, value);
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static void close(DebeziumEngine<?> engine) {
        try {
            engine.close();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
